package web

import (
	"context"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

const (
	paramAt  = "at"
	paramPin = "pin"            // has times of the address that are relative written as moments
	pastAge  = 10 * time.Second // of a cached instant
	maxPasts = 8                // cached
	scrub    = 30 * time.Minute // on either side of an instant that the scrubber reaches
)

// times reads times past.
type times struct {
	o     Options
	cache *cache[*view.Past]
	slots *fair.Slots
}

// newTimes returns nil if times past cannot be read.
func newTimes(o Options) *times {
	if o.Past == nil {
		return nil
	}
	t := &times{o: o, cache: newCache[*view.Past](pastAge), slots: fair.New(searchSlots)}
	t.cache.most = maxPasts
	return t
}

// at returns the cluster as it was at an instant.
func (t *times) at(ctx context.Context, at time.Time) (*view.Past, error) {
	return t.cache.get(query.FormatInstant(at), func() (*view.Past, error) {
		ticket, err := t.slots.Acquire(ctx, fair.FromContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("wait to read the past: %w", errors.Join(fair.ErrBusy, err))
		}
		defer ticket.Leave()
		return t.o.Past(ctx, at)
	})
}

// backend returns what pages and API read of an instant.
func (t *times) backend(past *view.Past, hides bool) Backend {
	b := Backend(fairBackend{past, t.slots})
	if hides {
		return payload.Hide(b)
	}
	return b
}

// servePast shows the page of an address with an instant.
func (p *pages) servePast(w http.ResponseWriter, r *http.Request, rt route) {
	q := r.URL.Query()
	given := q[paramAt]
	q.Del(paramAt)
	below := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: q.Encode()}
	now := templates.Link{Href: p.urls.Prefix + below.RequestURI(), Text: "Now"}
	at, err := query.ParseInstant(given[len(given)-1], p.now())
	if err != nil {
		p.notLoaded(w, r, invalid(err, now))
		return
	}
	pin := q.Has(paramPin)
	if pin {
		q.Del(paramPin)
		pinTimes(q, at)
	}
	if name := query.FormatInstant(at); pin || name != given[len(given)-1] || len(given) > 1 || hasEmpty(q) {
		for k := range q {
			q[k] = slices.DeleteFunc(q[k], func(v string) bool { return v == "" })
		}
		below.RawQuery = q.Encode()
		http.Redirect(w, r, p.urls.Prefix+withInstant(below.RequestURI(), at), http.StatusSeeOther)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	then, err := p.asOf(ctx, at, below.RequestURI())
	switch {
	case errors.Is(err, view.ErrFuture):
		p.notLoaded(w, r, invalid(fmt.Errorf("at %w", err), now))
		return
	case err != nil:
		p.notLoaded(w, r, err)
		return
	case then.instant.Empty:
		p.notLoaded(w, r, &problem{http.StatusNotFound, templates.Problem{
			Title: "Before the history", Message: "Nothing is kept of what was received by " + query.FormatInstant(at) + ".",
			Back: now.Href, BackText: now.Text,
		}})
		return
	case !rt.lasting():
		then.notLoaded(w, r, &problem{http.StatusBadRequest, templates.Problem{
			Title: "Known only as it is now", Message: rt.onlyNow, Back: now.Href, BackText: "This page now",
		}})
		return
	}
	pg, err := then.load(ctx, &below)
	if err != nil {
		then.notLoaded(w, r, err)
		return
	}
	pg.static = true
	then.show(w, r, pg)
}

// pinTimes writes the relative times of a query as they are at an instant. Charts of an instant end there anyway.
func pinTimes(v url.Values, at time.Time) {
	if q, err := lang.Parse(v.Get("q")); err == nil && !q.All() {
		v.Set("q", q.Pin(at).String())
	}
}

// asOf returns the pages as of an instant, for the same audience. Nothing can be done there. path is that of the page, below
// the prefix and without the instant.
func (p *pages) asOf(ctx context.Context, at time.Time, path string) (*pages, error) {
	past, err := p.times.at(ctx, at)
	if err != nil {
		return nil, err
	}
	before, after, err := past.Steps(ctx)
	if err != nil {
		return nil, fmt.Errorf("find neighbours of an instant: %w", err)
	}
	o := p.times.o
	o.Backend, o.Now = p.times.backend(past, !p.audience.Payload), past.Instant
	o.Commands, o.AppOutboxes, o.BeatTables, o.Peers, o.ReadOnly, o.then = nil, nil, nil, nil, true, past
	then := newPages(o, p.audience, p.urls, nil, func() {})
	then.signedIn, then.urls.HasCommands = p.signedIn, p.urls.HasCommands
	link := func(to time.Time) string {
		if to.IsZero() {
			return ""
		}
		return p.urls.Prefix + withInstant(path, to)
	}
	i := &templates.Past{
		At: at, WorkersAt: past.WorkersAt(), Doubts: past.Doubts(), Now: p.urls.Prefix + path, Before: link(before), After: link(after),
		Here:  p.urls.Prefix + withInstant(path, at),
		Empty: before.IsZero() && past.Empty(), From: at.Add(-scrub), To: at.Add(scrub), OfTrace: p.trace != nil,
	}
	if now := p.now(); i.To.After(now) {
		i.To = now
	}
	u, err := url.Parse(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // the path of a request
	}
	i.Path = p.urls.Prefix + u.EscapedPath()
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		for _, v := range u.Query()[name] {
			i.Params = append(i.Params, templates.Param{Name: name, Value: v})
		}
	}
	for _, by := range []time.Duration{-time.Hour, -time.Minute, time.Minute, time.Hour} {
		if to := at.Add(by); !to.After(p.now()) {
			i.Jumps = append(i.Jumps, templates.Link{Text: jumpText(by), Href: link(to)})
		}
	}
	then.instant = i
	return then, nil
}

func jumpText(by time.Duration) string {
	switch by {
	case -time.Hour:
		return "−1 h"
	case -time.Minute:
		return "−1 min"
	case time.Minute:
		return "+1 min"
	default:
		return "+1 h"
	}
}

// withInstant returns a path with an instant.
func withInstant(path string, at time.Time) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	q := u.Query()
	q.Set(paramAt, query.FormatInstant(at))
	u.RawQuery = q.Encode()
	return u.String()
}

// newest returns tasks of a state or a worker, newest change first: now those in memory, of a time past all.
func (p *common) newest(ctx context.Context, q state.Query) (tasks []state.Task, err error) {
	if p.instant == nil {
		p.backend.View(func(c state.View) { tasks = c.Tasks(q).Tasks })
		return tasks, nil
	}
	var all lang.Query
	for _, s := range q.States {
		all = all.And(lang.New(lang.Equal(lang.State, string(s))))
	}
	for _, w := range q.Workers {
		all = all.And(lang.New(lang.Equal(lang.Worker, w)))
	}
	page, err := p.backend.Tasks(ctx, history.TaskRequest{Query: all, Limit: q.Limit, Now: p.now()})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return page.Tasks, nil
}

// lookBack returns the address of a page as it is at this moment, which stays.
func lookBack(path string) string {
	u, err := url.Parse(path)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set(paramAt, "now")
	u.RawQuery = q.Encode()
	return u.String()
}

var (
	tag       = regexp.MustCompile(`<(a|form|umbel-chart)\b[^>]*>`)
	unpinned  = regexp.MustCompile(`\bdata-instant\b|\bmethod="post"`)
	addresses = regexp.MustCompile(`\b(href|action|data-brush)="([^"]*)"`)
)

// pin has every link and search form of a page lead to the same instant. It is done to the text of the page, so that no
// template can forget it. Elements with data-instant have one of their own.
func (p *common) pin(page []byte, at time.Time) []byte {
	return tag.ReplaceAllFunc(page, func(found []byte) []byte {
		if unpinned.Match(found) {
			return found
		}
		var field []byte
		pinned := addresses.ReplaceAllFunc(found, func(attribute []byte) []byte {
			part := addresses.FindSubmatch(attribute)
			path, ours := p.below(html.UnescapeString(string(part[2])))
			switch {
			case !ours:
				return attribute
			case string(part[1]) == "action":
				field = fmt.Appendf(nil, `<input type="hidden" name="at" value="%s">`, query.FormatInstant(at))
				return attribute
			}
			return fmt.Appendf(nil, `%s="%s"`, part[1], html.EscapeString(p.urls.Prefix+withInstant(path, at)))
		})
		return append(pinned, field...)
	})
}

// below returns the part of an address below the prefix, false if it leads to no page and no resource of this dashboard.
func (p *common) below(address string) (string, bool) {
	path, ok := strings.CutPrefix(address, p.urls.Prefix)
	return path, ok && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "/assets/")
}
