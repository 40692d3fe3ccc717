package validate

import (
	"errors"
	"net/http"
	"time"
)

var errNotYet = errors.New("validate: not built yet")

type Reader struct{}

func Compile(name string, spec ReaderSpec) (*Reader, error) { return nil, errNotYet }
func (r *Reader) WithHost(host string) *Reader              { return r }

type Raw struct {
	Status          int
	Header, Trailer http.Header
	Body            []byte
}

func (r *Reader) Prove(raw Raw, scope Scope, now time.Time) (*Proved, *Rejection) {
	return nil, &Rejection{Layer: LayerTransport, Rule: "not-built"}
}

type Proved struct{}
type DisplayText struct {
	Text      string
	Truncated bool
}

func (p *Proved) OK() bool                                          { return false }
func (p *Proved) Data() map[string]any                              { return nil }
func (p *Proved) Display() map[string]DisplayText                   { return nil }
func (p *Proved) Captured() (map[string]any, bool)                  { return nil, false }
func (p *Proved) Failure() (code string, builtin bool)              { return "", false }
func (p *Proved) NotDone() bool                                     { return false }
func (p *Proved) Row() string                                       { return "" }
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) { return 0, false }
