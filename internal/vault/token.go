package vault

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// The steps of an exchange.
const (
	StepToken     = "token"     // the secret goes to Binding.Token and a token comes back
	StepChallenge = "challenge" // a registry is asked what it wants; nothing secret goes there
)

// tokenTimeout bounds one request of an exchange. Calls wait for it, and a token
// endpoint that needs longer is down for an agent that waits.
const tokenTimeout = 15 * time.Second

// Exchange makes one send of an exchange: it records it, sends it within the
// limits of every send, and hands the answer to read, once. The error of read is
// returned as it is. An answer of status 2xx may hold a credential, whatever read
// makes of it: its body is never kept.
//
// An exchange outlives the call that began it, since others may wait for it and
// since a server that has replaced a secret must be heard: its context ends by its
// own time-out only.
type Exchange func(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error

// TokenRequest is one request of an exchange, complete but for the secret.
type TokenRequest struct {
	Identity    string // whose secret it is about
	Generation  uint64
	Step        string // StepToken or StepChallenge
	To          Place  // Binding.Token; for a challenge the identity's target
	Method      string
	Path, Query string // escaped; encoded, without "?"
	Header      http.Header
	Body        []byte // a form, or JSON; the secret is not in it
	MediaType   string // of Body, "" where there is none
	Hole        bool   // the secret goes into Body, as the value of the form's last member
	HoleAt      int    // there
	Timeout     time.Duration
}

// TokenCredential attaches a secret to one request of an exchange. It writes a
// header, fills the hole, or does both: the client's secret in the one, the refresh
// token in the other. What it fills in may be several members of a form.
type TokenCredential interface {
	// Attach compares the place of the exchange with the connection that was really
	// made. It fails with TARGET_NOT_ALLOWED.
	Attach(out Outgoing, c Made) error
	// Scan searches an answer for what was sent, so that it can be masked.
	Scan(b []byte) []secret.Hit
	// Generation is that of the identity.
	Generation() uint64
}

// TokenAnswer is an answer as it came, whole.
type TokenAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Narrow is what one call needs of a token at most. The zero value narrows
// nothing.
type Narrow struct {
	ReadOnly     bool     // every permission to write becomes one to read
	Repositories []string // nil for all that the identity names
}

// exchanging is one exchange of one identity's secret.
type exchanging struct {
	name       string
	generation uint64
	binding    Binding
	narrow     Narrow
	secret     secret.Secret // what is exchanged
	send       Exchange
	// keep takes what the server gave in place of the secret, before the token is
	// used; nil where nothing can take its place.
	keep func(fresh secret.Secret) error
}

// minted is what an exchange yields.
type minted struct {
	token   secret.Secret
	refresh secret.Secret // what the server gave in place of its like, zero where nothing
	life    time.Duration
	at      time.Time // when the answer came
}

func (m minted) wipe() {
	m.token.Wipe()
	m.refresh.Wipe()
}

// exchangers is how each kind gets its token.
var exchangers = map[string]func(exchanging, context.Context) (minted, error){
	KindOAuth2Client:  exchanging.clientCredentials,
	KindOAuth2Refresh: exchanging.refreshToken,
	KindGitHubApp:     exchanging.installationToken,
	KindJWTBearer:     exchanging.assertion,
	KindRegistryToken: exchanging.registryToken,
}

// request is the common part of a request to the place of the exchange.
func (e exchanging) request(method string) TokenRequest {
	return TokenRequest{
		Identity: e.name, Generation: e.generation, Step: StepToken, To: *e.binding.Token,
		Method: method, Path: e.binding.Token.Path, Timeout: tokenTimeout,
		Header: http.Header{"Accept": {"application/json"}},
	}
}

// exchange sends one request and reads its answer. What read says goes before what
// the send says of it.
func (e exchanging) exchange(ctx context.Context, r TokenRequest, c *tokenCredential, read func(TokenAnswer) error) error {
	var verdict error
	answered := false
	err := e.send(ctx, r, c, func(a TokenAnswer) error {
		answered = true
		verdict = read(a)
		return verdict
	})
	switch {
	case verdict != nil:
		err = verdict
	case err != nil:
		err = unsent(ctx, err)
	case !answered:
		err = fault.Newf(fault.Internal, "the exchange ended without an answer")
	}
	if err != nil {
		return fault.Newf(fault.CodeOf(err), "identity %s: %w", e.name, err).After(fault.From(err).RetryAfter())
	}
	return nil
}

// unsent gives an exchange that has no answer its code. A lost answer changes
// nothing that a call asked for, so it is never unknown.
func unsent(ctx context.Context, err error) error {
	switch code := fault.CodeOf(err); {
	case code == fault.OutcomeUnknown, code == fault.Internal && ctx.Err() != nil:
		return fault.New(fault.UpstreamUnavailable, err)
	}
	return err
}

// token is exchange for the request whose answer is the token. What replaces the
// secret is kept as soon as it is read, whatever becomes of the record of the send,
// and also where the token beside it cannot be used: the server takes no other any
// more.
func (e exchanging) token(ctx context.Context, r TokenRequest, c *tokenCredential, rules tokenRules) (minted, error) {
	var m minted
	var kept error
	err := e.exchange(ctx, r, c, func(a TokenAnswer) error {
		got, err := rules.read(a)
		if err == nil && c.repeats(got.token) {
			err = invalidAnswer("its token is the secret that was sent")
		}
		if !got.refresh.IsZero() && e.keep != nil {
			kept = e.keep(got.refresh)
		} else {
			got.refresh.Wipe()
		}
		m = got
		return err
	})
	if err == nil {
		err = kept
	}
	if err != nil {
		m.token.Wipe()
		return minted{}, err
	}
	return m, nil
}

// tokenCredential writes secrets into one request.
type tokenCredential struct {
	binding    Binding
	generation uint64
	secrets    []secret.Secret         // what is written
	header     func() (value string)   // of Authorization; nil for none
	body       func(dst []byte) []byte // what goes into the hole; nil for none
}

// Attach is of TokenCredential.
func (c *tokenCredential) Attach(out Outgoing, m Made) error {
	if c.header == nil && c.body == nil {
		return nil
	}
	for _, s := range c.secrets {
		if s.IsZero() {
			return fault.New(fault.Internal, errLeaseClosed)
		}
	}
	if err := c.binding.allowsToken(m); err != nil {
		return err
	}
	if c.header != nil {
		if err := out.SetHeader("Authorization", c.header()); err != nil {
			return fault.Newf(fault.Internal, "the Authorization header of the exchange cannot be written: %w", err)
		}
	}
	if c.body != nil {
		if err := out.FillBody(c.body); err != nil {
			return fault.Newf(fault.Internal, "the body of the exchange cannot be written: %w", err)
		}
	}
	return nil
}

// Generation is of TokenCredential.
func (c *tokenCredential) Generation() uint64 { return c.generation }

// Scan is of TokenCredential. It is for answers that are refused, so that the
// search is made ready only where it is needed.
func (c *tokenCredential) Scan(b []byte) []secret.Hit {
	parts := make([]secret.Secret, len(c.secrets))
	for i, s := range c.secrets {
		s.Use(func(b []byte) { parts[i] = secret.New(signature(b)) })
		defer parts[i].Wipe()
	}
	s := secret.NewScanner(parts...)
	defer s.Wipe()
	return s.Scan(b)
}

// repeats says whether a token holds, whole, a secret that was sent. To attach it
// would show the target what only the token endpoint may see. Parts of it mean
// nothing: two tokens of one server begin alike.
func (c *tokenCredential) repeats(token secret.Secret) bool {
	found := false
	token.Use(func(t []byte) {
		for _, s := range c.secrets {
			s.Use(func(b []byte) { found = found || len(b) > 0 && bytes.Contains(t, b) })
		}
	})
	return found
}

// url is the place as its owner writes it.
func (p Place) url() string {
	if p.Scheme == "https" && p.Port == 443 {
		return "https://" + p.Host + p.Path
	}
	return p.text()
}

// Format prints none of its fields, by any verb: of a success it is a credential.
func (TokenAnswer) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "(the answer of an exchange, not shown)")
}

// LogValue logs none of its fields.
func (TokenAnswer) LogValue() slog.Value {
	return slog.StringValue("(the answer of an exchange, not shown)")
}
