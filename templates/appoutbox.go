package templates

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// AppOutbox is the content of the pages of an application's outbox: its rows or its dead letters.
type AppOutbox struct {
	Outbox      outboxwatch.Outbox
	Several     bool // there are other ones
	Tabs        []Choice
	Dead        bool // dead letters are listed
	States      []AppState
	State, Name string // what rows are shown, empty for all
	Rows        []outboxwatch.Row
	DeadLetters []outboxwatch.DeadLetter
	Searched    int // rows looked through, if there may be more
	Unreadable  *outboxwatch.Error
	Newest      string // address of the first page, empty on it
	Older       string
	Chart       Chart
}

// AppState is a choice of a state.
type AppState struct {
	Label, Href string
	Count       history.Count
	Current     bool
}

// AppOutboxAlert says that the relay of an application's outbox has stopped.
type AppOutboxAlert struct {
	Name      string
	Ready     history.Count
	IdleSince time.Time
}

// Page draws the whole page.
func (v AppOutbox) Page(l Layout) templ.Component { return appOutboxPage(l, v) }

func (v AppOutbox) title() string {
	title := "Application outbox"
	if v.Several {
		title += " " + v.Outbox.Name
	}
	return title
}

// path is the address of the page without a query.
func (v AppOutbox) path(u URLs) templ.SafeURL {
	if v.Dead {
		return u.path("/outbox/app/dead")
	}
	return u.path("/outbox/app")
}

// changeable reports whether people may requeue and remove dead letters.
func (v AppOutbox) changeable(u URLs) bool {
	return u.CanSend && len(v.Outbox.Stats.MissingGrants) == 0 && v.Outbox.Stats.ReadOnly == ""
}

// known reports whether there are numbers to show.
func (v AppOutbox) known() bool { return !v.Outbox.ReadAt.IsZero() }

// AppStateWord is a state of a row as words.
func AppStateWord(s outboxwatch.State) string { return appLookOf(s).word }

// appLook is how a state of rows is shown.
type appLook struct{ word, class, icon string }

func appLookOf(s outboxwatch.State) appLook {
	switch s {
	case outboxwatch.Pending:
		return appLook{"Pending", "pending", "circle-dashed"}
	case outboxwatch.InFlight:
		return appLook{"In flight", "received", "send"}
	case outboxwatch.Stale:
		return appLook{"Stale", "retry", "triangle-alert"}
	case outboxwatch.Deferred:
		return appLook{"Deferred", "retry", "clock"}
	case outboxwatch.Due:
		return appLook{"Due again", "pending", "rotate-cw"}
	case outboxwatch.OtherSchema:
		return appLook{"Other schema", "rejected", "octagon-x"}
	}
	return appLook{string(s), "custom", "circle-dot"}
}

func appRowID(r outboxwatch.Row) string { return "r-" + strconv.FormatInt(r.ID, 10) }

func appDeadID(d outboxwatch.DeadLetter) string { return "d-" + strconv.FormatInt(d.ID, 10) }

// payloadText is a call as a line: its arguments, its keyword arguments.
func payloadText(p outboxwatch.Payload) string {
	text := jsonText(p.Args, p.ArgsSize)
	if kwargs := jsonText(p.Kwargs, p.KwargsSize); kwargs != "{}" {
		text += " " + kwargs
	}
	return text
}

func jsonText(v json.RawMessage, bytes int) string {
	if v == nil && bytes > outboxwatch.MaxPayload {
		return "(" + size(bytes) + ", not read)"
	}
	return string(v)
}

// optionsText are the options of a call as a line, empty if there are none.
func optionsText(p outboxwatch.Payload) string {
	if text := jsonText(p.Options, p.OptionsSize); text != "{}" {
		return text
	}
	return ""
}

// retaken reports whether a relay has taken a row again whose retry is due.
func retaken(r outboxwatch.Row) bool {
	return r.State == outboxwatch.Due && !r.UpdatedAt.Before(r.RetryAfter)
}

// problem is why rows or numbers are not read, nil if they are.
func (v AppOutbox) problem() *outboxwatch.Error {
	if v.Outbox.Err != nil {
		return v.Outbox.Err
	}
	return v.Unreadable
}

// stateHref is the address of the nth choice of states.
func (v AppOutbox) stateHref(n int) string {
	if n < len(v.States) {
		return v.States[n].Href
	}
	return ""
}

// noun is the word for a number of things.
func noun(c history.Count, one, many string) string {
	if c.N == 1 && c.Exact {
		return one
	}
	return many
}

func orUnknown(s string) string {
	if s == "" {
		return "no reason recorded"
	}
	return s
}

// appOutbox links to the page of an application's outbox.
func (u URLs) appOutbox(name string) templ.SafeURL {
	return u.path("/outbox/app?" + url.Values{"outbox": {name}}.Encode())
}

func (v AppOutbox) server() string { return cmp.Or(v.Outbox.Stats.Server, "The database") }
