package validate

import (
	"errors"
	"net/http"
	"time"
)

var errNotYet = errors.New("validate: not built yet")

type Schema struct{ doc any }

func CompileSchema(name string, doc any) (*Schema, error) { return nil, errNotYet }
func (s *Schema) Validate(v any) *Violation               { return &Violation{Rule: "not-compiled"} }
func (s *Schema) Violations(v any, max int) []Violation   { return []Violation{{Rule: "not-compiled"}} }
func (s *Schema) Doc() any                                { return s.doc }

type Violation struct {
	Rule, SchemaPath, InstancePath, Message string
	EnginesDiffer                           bool
}
type SchemaUse uint8

const (
	UseInput SchemaUse = iota + 1
	UseResult
	UseExpect
	UseEnvelope
)

type SchemaFinding struct{ Rule, Pointer, Message, Hint string }

func LintSchema(doc any, use SchemaUse) []SchemaFinding { return nil }

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
func LintPattern(p string) []string                                 { return nil }
