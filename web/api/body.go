package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// MaxBody is how long the body of a request may be, in bytes: arguments of a task as a form sends them, three bytes for
// one, and what is around them.
const MaxBody = 2 << 20

// readBody reads the body of a request, which is JSON.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if parsed, _, err := mime.ParseMediaType(kind); err != nil || parsed != "application/json" {
			return nil, problem(http.StatusUnsupportedMediaType, "The body must be of type application/json.")
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes.", large.Limit))
	}
	if err != nil {
		return nil, problem(http.StatusBadRequest, "The body cannot be read.")
	}
	return body, nil
}

// requestBody describes a body that decodeBody reads.
func requestBody[B any](h huma.API) *huma.RequestBody {
	schemas := h.OpenAPI().Components.Schemas
	ref := schemas.Schema(reflect.TypeFor[B](), true, "")
	schema := schemas.SchemaFromRef(ref.Ref)
	schema.AdditionalProperties = false
	return &huma.RequestBody{
		Required: len(schema.Required) > 0, Content: map[string]*huma.MediaType{"application/json": {Schema: ref}},
	}
}

// decodeBody reads a JSON object into the struct that v points to. It refuses members that the struct has no field
// for, and those that come twice. An empty body is an empty object.
func decodeBody(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	into := reflect.ValueOf(v).Elem()
	fields := map[string]reflect.Value{}
	var names []string
	for f, value := range into.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name], names = value, append(names, name)
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return problem(http.StatusBadRequest, "The body is not a JSON object.")
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		name, _ := key.(string)
		var raw json.RawMessage
		if err == nil {
			err = d.Decode(&raw)
		}
		if err != nil {
			return notJSON(body)
		}
		field, known := fields[name]
		switch {
		case !known:
			p := badField(name, "is not known; these are: "+strings.Join(names, ", "))
			p.Nearest = nearest(name, names)
			return p
		case seen[name]:
			return badField(name, "comes twice")
		}
		seen[name] = true
		if p := fill(name, raw, field); p != nil {
			return p
		}
	}
	if _, err := d.Token(); err != nil {
		return notJSON(body)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem(http.StatusBadRequest, "Something follows the JSON object in the body.")
	}
	return nil
}

// fill reads a value at a path of the body. Null leaves the field as it is.
func fill(path string, raw json.RawMessage, field reflect.Value) *Problem {
	if field.Kind() == reflect.Slice && field.Type() != reflect.TypeFor[json.RawMessage]() {
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return badField(path, wanted(field.Type()))
		}
		list := reflect.MakeSlice(field.Type(), len(items), len(items))
		for i, item := range items {
			at := fmt.Sprintf("%s[%d]", path, i)
			if string(item) == "null" {
				return badField(at, wanted(field.Type().Elem()))
			}
			if p := fill(at, item, list.Index(i)); p != nil {
				return p
			}
		}
		field.Set(list)
		return nil
	}
	if json.Unmarshal(raw, field.Addr().Interface()) != nil {
		return badField(path, wanted(field.Type()))
	}
	return nil
}

// wanted says what a field must be.
func wanted(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Time]() {
		return "must be a time as RFC 3339, such as 2026-11-21T10:00:00Z"
	}
	switch t.Kind() {
	case reflect.String:
		return "must be text"
	case reflect.Bool:
		return "must be true or false"
	case reflect.Float64:
		return "must be a number"
	case reflect.Uint8:
		return "must be a whole number from 0 to 255"
	case reflect.Slice:
		return "must be an array"
	case reflect.Map, reflect.Struct:
		return "must be an object"
	default:
		return "must be a whole number"
	}
}

// badField reports what is wrong at a path of the body.
func badField(path, message string) *Problem {
	path = shorten(path)
	p := problem(http.StatusBadRequest, "Field "+path+" "+message+".")
	p.Errors = []Detail{{Location: "body." + path, Message: message}}
	return p
}
