package templates

import "github.com/a-h/templ"

func (s Site) deadLetters() templ.SafeURL { return templ.SafeURL(s.Prefix + "/outbox?state=dead") }
