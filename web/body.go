package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/fair"
)

// Bounds of request bodies.
const (
	bodyTimeout = 10 * time.Second // for all of one
	smallBody   = 64 << 10         // bytes; longer ones need a slot
	bodySlots   = 8
)

// bodies reads the bodies of requests before any route sees them, so that no route can forget to bound one.
type bodies struct {
	slots   *fair.Slots
	timeout time.Duration
}

func newBodies() *bodies { return &bodies{fair.New(bodySlots), bodyTimeout} }

// refusal is why a request is refused.
type refusal struct {
	status int
	detail string
}

// begin bounds the time for the body of r.
func (b *bodies) begin(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		// Not every server can bound a read: those that cannot have their own limits.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.timeout))
	}
}

// take puts the body of r into memory. The slot that it may hold is given back by leave, nil if there is none.
// It is of the type want, empty for any. begin was called before.
func (b *bodies) take(w http.ResponseWriter, r *http.Request, want string) (leave func(), wrong *refusal) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > api.MaxBody {
		w.Header().Set("Connection", "close")
		return nil, tooLong()
	}
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		ticket, err := b.slots.Acquire(r.Context(), fair.FromContext(r.Context()))
		if err != nil {
			w.Header().Set("Retry-After", "5")
			return nil, &refusal{http.StatusServiceUnavailable, "Too many large requests. Try again."}
		}
		leave = ticket.Leave
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(body))
		return leave, wrongType(r, len(body), want)
	}
	w.Header().Set("Connection", "close")
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return leave, tooLong()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return leave, &refusal{
			http.StatusRequestTimeout, fmt.Sprintf("The body did not arrive within %v.", b.timeout),
		}
	}
	return leave, &refusal{http.StatusBadRequest, "The body could not be read."}
}

func tooLong() *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes.", api.MaxBody)}
}

// The types of bodies that forms and clients of the API send.
const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// wrongType says that a body is of another type than want.
func wrongType(r *http.Request, length int, want string) *refusal {
	kind := r.Header.Get("Content-Type")
	if length == 0 || want == "" || kind == "" && want == jsonType {
		return nil
	}
	if got, _, err := mime.ParseMediaType(kind); err == nil && got == want {
		return nil
	}
	return &refusal{http.StatusUnsupportedMediaType, "The body must be of type " + want + "."}
}
