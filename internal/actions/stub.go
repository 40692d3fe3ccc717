package actions

import (
	"errors"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

var errUnbuilt = errors.New("not loaded")

type (
	routeSpec    struct{}
	stepSpec     struct{ timeout time.Duration }
	approvalSpec struct{ ask Ask }
	idempotency  struct{}
	places       struct{}
)

func (a approvalSpec) form() string  { return "" }
func (i idempotency) declared() bool { return false }

func walkPath(m map[string]any, path string) (any, bool) { return nil, false }

// LoadSet reads the site file and every contract folder.
func LoadSet(site string, contractsDir string) (*Set, Problems) {
	return nil, Problems{{File: site, Message: errUnbuilt.Error()}}
}

// LoadContract reads one contract folder without a site file.
func LoadContract(dir string) (*Contract, Problems) {
	return nil, Problems{{File: dir, Message: errUnbuilt.Error()}}
}

// BaseEnvelope returns the schema of answers outside any action.
func BaseEnvelope() *validate.Schema { return nil }

// Input is a caller's input that fits the contract. The zero value fits none.
type Input struct {
	value     map[string]any
	canonical []byte
}

// ParseInput checks a caller's input.
func (c *Contract) ParseInput(doc any) (Input, error) {
	return Input{}, fault.New(fault.Internal, errUnbuilt)
}

// Canonical returns the one spelling of the input.
func (in Input) Canonical() []byte { return in.canonical }

// Value returns the input.
func (in Input) Value() map[string]any { return in.value }

// Digest covers the action's name and the input.
func (in Input) Digest(action string) [32]byte { return [32]byte{} }

// Route is where one call goes.
type Route struct {
	target *Target
	with   map[string]any
}

// Target returns the target.
func (r Route) Target() *Target { return r.target }

// With returns one of the route's constants.
func (r Route) With(name string) (any, bool) { return walkPath(r.with, name) }

// Resolve finds the one target of a call.
func (s *Set) Resolve(c *Contract, in Input) (Route, error) {
	return Route{}, fault.New(fault.TargetNotAllowed, errUnbuilt)
}

// Freeze makes the plan of a call.
func Freeze(c *Contract, r Route, in Input, id IdentityFact, call CallFacts) (Plan, error) {
	return Plan{}, fault.New(fault.Internal, errUnbuilt)
}

// Canonical returns the bytes under the digest.
func (p Plan) Canonical() []byte { return nil }

// Contract returns the plan's contract.
func (p Plan) Contract() *Contract { return nil }

// Route returns the plan's route.
func (p Plan) Route() Route { return Route{} }

// Input returns the plan's input.
func (p Plan) Input() Input { return Input{} }

// Sentence returns the card's sentence.
func (p Plan) Sentence() string { return "" }

// Lines returns the card's lines.
func (p Plan) Lines() []CardLine { return nil }

// DaemonLine returns the daemon's own line.
func (p Plan) DaemonLine() string { return "" }

// Exceptions returns the lint rules set aside on purpose.
func (p Plan) Exceptions() []string { return nil }

// Ask returns the strictest word of contract, target and identity.
func (p Plan) Ask() Ask { return AskEveryCall }

// Request builds the request.
func (p Plan) Request(now time.Time) (Request, error) {
	return Request{}, fault.New(fault.Internal, errUnbuilt)
}

// Reader returns what reads the answer.
func (p Plan) Reader() *validate.Reader { return nil }

func (p Plan) scope(now time.Time) validate.Scope {
	return func(string) (any, bool) { return nil, false }
}

// Finding is one remark of the lint.
type Finding struct {
	Rule, File    string
	Line, Column  int
	Message, Hint string
	Page          string
}

// Lint reads a loaded contract with a reviewer's eyes.
func Lint(c *Contract, s *Set) []Finding { return nil }
