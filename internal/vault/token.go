package vault

import (
	"context"
	"net/http"
	"time"

	"chatelaine/internal/secret"
)

// The steps of an exchange, as the record names them.
const (
	StepToken     = "token"     // the secret goes to the token place, a token comes back
	StepChallenge = "challenge" // a registry is asked, without the secret, what its token must say
)

// Exchange makes one request of an exchange: with the limits of a call's own send,
// and recorded before and after. read gets a whole answer, of any status, and takes
// out of it what is needed; its error becomes the exchange's own. An error without
// a code is INTERNAL. The daemon gives it; nothing is sent twice.
type Exchange func(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error

// TokenRequest is one request of an exchange, complete but for the secret.
type TokenRequest struct {
	Identity   string
	Generation uint64
	Step       string // StepToken or StepChallenge
	Method     string
	To         Place  // the binding's token place; of a challenge the identity's destination
	Path       string // escaped, under To.Path
	Query      string // encoded, without "?"
	Header     http.Header
	Body       []byte
	MediaType  string // of Body, "" where there is none
	Hole       bool   // the secret goes into Body, as the value of a form
	HoleAt     int    // there
	Timeout    time.Duration
}

// TokenCredential is the secret on its way to the token place. Attach compares the
// connection with that place.
type TokenCredential interface {
	Attach(out Outgoing, c Made) error
	// Scan looks for the secret in what came back.
	Scan(b []byte) []secret.Hit
}

// TokenAnswer is what came: the remote's bytes, of which nothing may go anywhere
// but a token.
type TokenAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}
