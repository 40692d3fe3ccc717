package actions

import (
	"maps"
	"slices"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// Contract is one loaded contract. All its fields were checked by the loader;
// nothing later checks them again.
type Contract struct {
	action, version string
	summary, owner  string
	effect          Effect
	dir             string
	digest          [32]byte

	inputDoc     map[string]any // as published: a list's names filled in
	inputSchema  *validate.Schema
	resultDoc    map[string]any
	resultSchema *validate.Schema
	envelope     *validate.Schema

	route     routeSpec
	lookups   []*stepSpec // in the order written
	request   stepSpec
	poll      *stepSpec // nil where there is none
	reconcile *stepSpec // nil where there is none
	approval  approvalSpec
	display   map[string]validate.DisplayBound
	checks    []validate.CheckSpec

	idem       idempotency
	atMostOnce string
	retry      RetryPolicy
	failures   []OwnCode
	exceptions []exception

	targets []string // that list the action, sorted
	places  places
}

// OwnCode is an error code that a contract declares itself. Retryable says that
// a new call may succeed.
type OwnCode struct {
	Code, Message string
	Retryable     bool
}

// RetryPolicy says how often one call may be sent. Attempts counts the first
// one too: 1 means no retry.
type RetryPolicy struct {
	Attempts int
	Within   time.Duration
	Codes    map[fault.Code]bool
	// RateLimitHeader names a header that tells when to come back, besides
	// Retry-After; RateLimitUnit is how to read it: seconds, unix_seconds or
	// http_date.
	RateLimitHeader, RateLimitUnit string
}

type exception struct{ rule, because string }

// Action returns the contract's name.
func (c *Contract) Action() string { return c.action }

// Version returns the contract's semantic version.
func (c *Contract) Version() string { return c.version }

// Summary returns the sentence that discovery shows.
func (c *Contract) Summary() string { return c.summary }

// Owner returns who answers for the contract.
func (c *Contract) Owner() string { return c.owner }

// Effect returns what the contract does to the remote system.
func (c *Contract) Effect() Effect { return c.effect }

// Dir returns the contract's folder.
func (c *Contract) Dir() string { return c.dir }

// InputSchema returns the published schema of the input, with the names of the
// operator's list filled in.
func (c *Contract) InputSchema() *validate.Schema { return c.inputSchema }

// ResultSchema returns the published schema of data.
func (c *Contract) ResultSchema() *validate.Schema { return c.resultSchema }

// EnvelopeSchema returns the schema of every answer of this action.
func (c *Contract) EnvelopeSchema() *validate.Schema { return c.envelope }

// Digest covers the contract's whole text in its canonical form and the names
// of the operator's list where it uses one.
func (c *Contract) Digest() [32]byte { return c.digest }

// OwnCodes returns the codes the contract declares, in alphabetical order.
func (c *Contract) OwnCodes() []OwnCode { return slices.Clone(c.failures) }

// OwnCode returns one of the codes the contract declares.
func (c *Contract) OwnCode(code string) (OwnCode, bool) {
	for _, o := range c.failures {
		if o.Code == code {
			return o, true
		}
	}
	return OwnCode{}, false
}

// Retry returns the retry policy; one attempt where the contract has none.
func (c *Contract) Retry() RetryPolicy {
	p := c.retry
	p.Codes = maps.Clone(p.Codes)
	return p
}

// Idempotent says whether sending the request twice does it once: every read,
// and a change that declares how.
func (c *Contract) Idempotent() bool { return c.effect == Read || c.idem.declared() }

// Ask returns the contract's own word; AskNever for a read that says nothing.
func (c *Contract) Ask() Ask { return c.approval.ask }

// Targets returns the names of the targets that this action can reach.
func (c *Contract) Targets() []string { return slices.Clone(c.targets) }

// SentenceForm returns the sentence with the inputs' names in braces, for the
// card of a session.
func (c *Contract) SentenceForm() string { return c.approval.form() }

// DisplayNames returns the names of the display texts, sorted.
func (c *Contract) DisplayNames() []string { return slices.Sorted(maps.Keys(c.display)) }

// Timeout returns how long the request may take, the whole step.
func (c *Contract) Timeout() time.Duration { return c.request.timeout }
