package actions

import (
	"net/http"
	"time"

	"chatelaine/internal/validate"
)

// CallFacts are the daemon's own values of one call: what a contract may name
// as call.id, call.idempotency_key and call.now.
type CallFacts struct {
	CallID, IdempotencyKey string
	Now                    time.Time
}

// IdentityFact says which identity, and which generation of its secret, a plan
// was made for.
type IdentityFact struct {
	Name       string
	Generation uint64
}

// CardLine is one line of an approval card under its sentence.
type CardLine struct{ Label, Value string }

// Plan is one call, frozen: what was shown is what is sent. The zero value
// sends nothing.
type Plan struct{ p *plan }

type plan struct {
	contract   *Contract
	route      Route
	input      Input
	id         IdentityFact
	call       CallFacts
	looked     map[string]map[string]any // by lookup's name
	canonical  []byte
	digest     [32]byte
	sentence   string
	lines      []CardLine
	daemonLine string
}

// Request is one HTTP request, complete but for the credential.
type Request struct {
	step     string
	target   *Target
	method   string
	path     string
	query    string
	header   http.Header
	body     []byte
	mime     string
	timeout  time.Duration
	change   bool
	reusable bool
	hole     Hole
	holed    bool
}

// Step names the step: "request", "poll", "reconcile" or a lookup's own name.
func (r Request) Step() string { return r.step }

// Target returns where it goes.
func (r Request) Target() *Target { return r.target }

// Method returns the HTTP method.
func (r Request) Method() string { return r.method }

// WirePath returns the escaped path with the base path, as it is written on the
// wire.
func (r Request) WirePath() string { return r.path }

// Query returns the encoded query without "?", "" for none.
func (r Request) Query() string { return r.query }

// Header returns the headers, without the credential, Host and Content-Type.
func (r Request) Header() http.Header { return r.header.Clone() }

// Body returns the encoded body, nil for none.
func (r Request) Body() []byte { return r.body }

// ContentType returns the body's media type, "" where there is no body.
func (r Request) ContentType() string { return r.mime }

// Timeout returns how long the whole step may take.
func (r Request) Timeout() time.Duration { return r.timeout }

// Change says whether it may change something: only the request of a change
// does.
func (r Request) Change() bool { return r.change }

// ReuseConnection says whether an idle connection may carry it: not for a
// change without idempotency, because a stale one makes a false unknown outcome.
func (r Request) ReuseConnection() bool { return r.reusable }

// Digest returns the plan's digest.
func (p Plan) Digest() [32]byte {
	if p.p == nil {
		return [32]byte{}
	}
	return p.p.digest
}

// Scope returns the values that the request's answer may be compared with.
func (p Plan) Scope(now time.Time) validate.Scope {
	if p.p == nil {
		return nothing
	}
	return p.p.env(now, false).lookup
}
