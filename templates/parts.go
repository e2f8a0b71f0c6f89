package templates

import (
	"bytes"
	"context"
	"io"

	"github.com/a-h/templ"
)

// Parts are the parts of a page that change by themselves, as they were drawn. They do not contain each other.
type Parts struct {
	Regions []Part // replaced as a whole
	Lists   []List
}

// Part is an element. ID is its id attribute.
type Part struct{ ID, HTML string }

// List is an element whose children are rows in order. ID is its id attribute.
type List struct {
	ID   string
	Rows []Part
}

// Record draws c and returns the parts of it that change by themselves.
func Record(ctx context.Context, c templ.Component, w io.Writer) (Parts, error) {
	var p Parts
	err := c.Render(context.WithValue(ctx, partsKey{}, &p), w)
	return p, err
}

// partsKey is the key of the *Parts of a context in which a page is recorded.
type partsKey struct{}

// region draws an element that live updates replace as a whole.
func region(id string, body templ.Component) templ.Component {
	return recorded(body, func(p *Parts, html string) { p.Regions = append(p.Regions, Part{id, html}) })
}

// list begins a list, within its element. The rows follow.
func list(id string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, _ io.Writer) error {
		if p, _ := ctx.Value(partsKey{}).(*Parts); p != nil {
			p.Lists = append(p.Lists, List{ID: id})
		}
		return nil
	})
}

// row draws a row of the list that began last.
func row(id string, body templ.Component) templ.Component {
	return recorded(body, func(p *Parts, html string) {
		l := &p.Lists[len(p.Lists)-1]
		l.Rows = append(l.Rows, Part{id, html})
	})
}

// recorded draws body, and passes it to add where a page is recorded. Parts within body are not recorded.
func recorded(body templ.Component, add func(p *Parts, html string)) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		p, _ := ctx.Value(partsKey{}).(*Parts)
		if p == nil {
			return body.Render(ctx, w)
		}
		var b bytes.Buffer
		if err := body.Render(context.WithValue(ctx, partsKey{}, (*Parts)(nil)), &b); err != nil {
			return err
		}
		add(p, b.String())
		_, err := w.Write(b.Bytes())
		return err
	})
}
