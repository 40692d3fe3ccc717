package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"chatelaine/internal/fault"
)

// Hole is where in a request's body the credential goes: at Offset, between the
// quotes of an empty JSON string, or as the empty value of a form.
type Hole struct {
	Offset int
	Form   bool
}

const (
	// headRoom is what the lines of a usual request take, so that a secret in them
	// is not left behind by a slice that grew.
	headRoom = 1024
	// holeRoom is what the largest secret takes in the body: 8 KiB of bytes, each
	// written as six (\u00XX); or two of them, each as three (%XX).
	holeRoom = 6 * 8 << 10
)

// The ways in which a credential fails to be exactly one. Each is a mistake of ours.
var (
	errTwice    = errors.New("the credential was attached twice")
	errTaken    = errors.New("the credential would replace a header of the request")
	errNoHole   = errors.New("the body has no place for a credential")
	errUnfilled = errors.New("the body's place for the credential was left empty")
	errFilling  = errors.New("what the credential wrote would break out of its place in the body")
)

// outgoing is the request's side of one Attach: it takes the credential once.
type outgoing struct {
	s           step
	name, value string // the header line
	fill        []byte // what goes into the hole
	filled      bool
	err         error // the first mistake; it stays, whatever the credential makes of it
}

// SetHeader is of Outgoing.
func (o *outgoing) SetHeader(name, value string) error {
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case o.err != nil:
	case o.name != "", o.filled && !o.s.exchange:
		o.err = errTwice
	case o.s.hasHeader(name):
		o.err = errTaken
	default:
		o.err = checkHeader(http.Header{name: {value}})
	}
	if o.err == nil {
		o.name, o.value = name, value
	}
	return o.err
}

// hasHeader says whether the request has a line of that name, in any case.
func (s step) hasHeader(name string) bool {
	for have := range s.header {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

// FillBody is of Outgoing.
func (o *outgoing) FillBody(write func(dst []byte) []byte) error {
	switch {
	case o.err != nil:
	case o.s.hole == nil:
		o.err = errNoHole
	case o.filled, o.name != "" && !o.s.exchange:
		o.err = errTwice
	default:
		room := make([]byte, 0, holeRoom)
		o.fill, o.filled = write(room), true
		if cap(o.fill) != holeRoom { // it grew elsewhere
			clear(room[:holeRoom])
		}
		o.err = o.checkFill()
	}
	return o.err
}

// Hole is of Outgoing.
func (o *outgoing) Hole() (form, ok bool) {
	if o.s.hole == nil {
		return false, false
	}
	return o.s.hole.Form, true
}

// checkFill proves that what was written stays inside its string or value.
func (o *outgoing) checkFill() error {
	if len(o.fill) == 0 {
		return errUnfilled
	}
	if !o.s.hole.Form {
		quoted := make([]byte, 0, len(o.fill)+2)
		quoted = append(append(append(quoted, '"'), o.fill...), '"')
		defer clear(quoted)
		if !json.Valid(quoted) {
			return errFilling
		}
		return nil
	}
	for _, c := range o.fill {
		if !formByte(c) && !(o.s.exchange && (c == '&' || c == '=')) {
			return errFilling
		}
	}
	return nil
}

// formByte says whether a byte may stand in an encoded value of a form.
func formByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("*-._~+%", c) >= 0
}

// checkHole holds a body's hole to the shape that Hole promises.
func (s step) checkHole() error {
	if s.hole == nil {
		return nil
	}
	at := s.hole.Offset
	if at < 1 || at > len(s.body) {
		return errors.New("the credential's place lies outside the body")
	}
	before, rest := s.body[at-1], s.body[at:]
	switch {
	case s.hole.Form && before == '=' && (len(rest) == 0 || rest[0] == '&'):
	case !s.hole.Form && before == '"' && len(rest) > 0 && rest[0] == '"':
	default:
		return errors.New("the credential's place in the body is not an empty value")
	}
	return nil
}

// attach lets the credential in and proves that it is exactly one: a header line, a
// filled body or the certificate that was shown. A body that has a hole goes out
// filled or not at all.
func (s step) attach(c Credential, facts Connection, certified bool) (*outgoing, *stop) {
	o := &outgoing{s: s}
	if c != nil {
		if err := c.Attach(o, facts); err != nil {
			o.wipe()
			if o.err != nil { // ours, whatever the credential made of it
				return nil, stopped(PhaseAttach, fault.Internal, o.err)
			}
			return nil, attachStop(err)
		}
	}
	switch {
	case o.err != nil:
	case certified && (o.name != "" || o.filled):
		o.err = errTwice
	case s.hole != nil && !o.filled:
		o.err = errUnfilled
	}
	if o.err != nil {
		o.wipe()
		return nil, stopped(PhaseAttach, fault.Internal, o.err)
	}
	return o, nil
}

// attachStop keeps a coded refusal and makes any other TARGET_NOT_ALLOWED.
func attachStop(err error) *stop {
	if coded, ok := errors.AsType[*fault.Error](err); ok {
		return &stop{PhaseAttach, coded}
	}
	return stopped(PhaseAttach, fault.TargetNotAllowed, err)
}

// lines are the headers with the credential, in a map of its own.
func (o *outgoing) lines() http.Header {
	h := maps.Clone(o.s.header)
	if h == nil {
		h = http.Header{}
	}
	if o.name != "" {
		h[o.name] = []string{o.value}
	}
	return h
}

// Format prints none of its fields, by any verb.
func (o *outgoing) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "(the place of a credential, not shown)")
}

// LogValue logs none of its fields.
func (o *outgoing) LogValue() slog.Value {
	return slog.StringValue("(the place of a credential, not shown)")
}

// wipe lets go of the credential.
func (o *outgoing) wipe() {
	clear(o.fill)
	o.fill, o.value = nil, ""
}

// room is at least what the request takes once it is encoded.
func (s step) room(o *outgoing) int {
	n := headRoom + len(s.path) + len(s.query) + len(o.name) + len(o.value) + len(s.body) + len(o.fill)
	for name, values := range s.header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// appendBody appends the body with the credential in its hole.
func (s step) appendBody(b []byte, o *outgoing) []byte {
	if s.hole == nil {
		return append(b, s.body...)
	}
	b = append(b, s.body[:s.hole.Offset]...)
	b = append(b, o.fill...)
	return append(b, s.body[s.hole.Offset:]...)
}

// filled is a copy of the body with the credential in its hole.
func (s step) filled(o *outgoing) []byte {
	return s.appendBody(slices.Grow([]byte(nil), len(s.body)+len(o.fill)), o)
}
