package web

import (
	"context"

	"github.com/umbelhq/umbel/internal/about"
	"github.com/umbelhq/umbel/templates"
)

// aboutPage says what this program is and how it is doing.
type aboutPage struct{ *common }

func (p *aboutPage) load(ctx context.Context, _ address) (page, error) {
	v := templates.About{Version: p.version, Build: about.Read(), Health: p.backend.Health(), Stored: p.backend.History().Health(), IsTrace: p.trace != nil}
	if p.flow != nil {
		v.Flow = p.flow.Verdict(ctx)
	}
	return page{url: templates.AboutPath, title: "About", view: v}, nil
}
