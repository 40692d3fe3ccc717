package vault

import (
	"context"
	"encoding/base64"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// How a client shows who it is (RFC 6749 section 2.3.1).
const (
	authBasic = "basic" // in a header
	authBody  = "body"  // in the form
	authNone  = "none"  // by its id alone: a public client
)

const formType = "application/x-www-form-urlencoded"

// clientCredentials is the grant of RFC 6749 section 4.4. The audience is what
// several servers want and no RFC defines; the resource is that of RFC 8707.
func (e exchanging) clientCredentials(ctx context.Context) (minted, error) {
	b := e.binding
	f := form{}.add("grant_type", "client_credentials").add("scope", b.Param("scopes")).
		add("audience", b.Param("audience")).add("resource", b.Param("resource"))
	r, c := e.request("POST"), e.credential()
	r.MediaType = formType
	if b.auth() == authBody {
		r.Body = f.add("client_id", b.Param("client_id")).open("client_secret")
		r.Hole, r.HoleAt = true, len(r.Body)
		c.write("", e.secret)
	} else {
		r.Body = f[:len(f)-1] // without the last "&"
		c.basic(b.Param("client_id"), e.secret)
	}
	return e.token(ctx, r, c, oauthRules)
}

// refreshToken is the grant of RFC 6749 section 6.
func (e exchanging) refreshToken(ctx context.Context) (minted, error) {
	b := e.binding
	g, err := readGrant(e.secret, b.auth())
	if err != nil {
		return minted{}, fault.Newf(fault.IdentityUnavailable, "identity %s: %w; put it again", e.name, err)
	}
	defer g.wipe()
	f := form{}.add("grant_type", "refresh_token").add("scope", b.Param("scopes"))
	r, c := e.request("POST"), e.credential()
	c.secrets = []secret.Secret{g.refresh}
	if !g.client.IsZero() {
		c.secrets = append(c.secrets, g.client)
	}
	r.MediaType = formType
	if b.auth() == authBasic {
		c.basic(b.Param("client_id"), g.client)
	} else {
		f = f.add("client_id", b.Param("client_id"))
	}
	r.Body = f.open("refresh_token")
	r.Hole, r.HoleAt = true, len(r.Body)
	if b.auth() == authBody {
		c.write("&client_secret=", g.refresh, g.client)
	} else {
		c.write("", g.refresh)
	}
	// What it took to come this far is not taken from the exchange: where an answer is
	// cut off, the refresh token in it is lost.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
	defer cancel()
	if keep := e.keep; keep != nil {
		e.keep = func(fresh secret.Secret) error {
			whole, err := g.renewed(fresh)
			if err != nil {
				return fault.Newf(fault.IdentityUnavailable, "identity %s: %w; put it again", e.name, err)
			}
			return keep(whole)
		}
	}
	return e.token(ctx, r, c, oauthRules)
}

// assertion is the grant of RFC 7523 section 2.1.
func (e exchanging) assertion(ctx context.Context) (minted, error) {
	b := e.binding
	issuer := b.Param("issuer")
	subject, audience := b.Param("subject"), b.Param("audience")
	if subject == "" {
		subject = issuer // RFC 7523 section 3: it must be there
	}
	if audience == "" {
		audience = b.Token.url()
	}
	c := newClaims(issuer)
	c.Subject, c.Audience, c.Scope, c.ID = subject, audience, b.Param("scopes"), newAssertionID()
	jwt, err := e.signed(c, b.Param("key_id"))
	if err != nil {
		return minted{}, err
	}
	defer jwt.Wipe()
	f := form{}.add("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer").add("scope", b.Param("scopes"))
	r, cred := e.request("POST"), e.credential()
	r.MediaType = formType
	r.Body = f.open("assertion")
	r.Hole, r.HoleAt = true, len(r.Body)
	cred.watch(jwt)
	cred.write("", jwt)
	return e.token(ctx, r, cred, oauthRules)
}

// credential holds the identity's secret, and writes nothing yet.
func (e exchanging) credential() *tokenCredential {
	return &tokenCredential{binding: e.binding, generation: e.generation, secrets: []secret.Secret{e.secret}}
}

// basic writes id and secret into the header: each first encoded as in a form, as
// RFC 6749 section 2.3.1 has it and plain Basic (RFC 7617) does not.
func (c *tokenCredential) basic(id string, s secret.Secret) {
	c.header = func() (value string) {
		s.Use(func(b []byte) {
			text := append(appendForm(make([]byte, 0, 3*(len(id)+len(b))+1), []byte(id)), ':')
			text = appendForm(text, b)
			value = "Basic " + base64.StdEncoding.EncodeToString(text)
			clear(text)
		})
		return value
	}
}

// write fills the hole with the secrets, encoded, and between between them.
func (c *tokenCredential) write(between string, all ...secret.Secret) {
	c.body = func(dst []byte) []byte {
		for i, s := range all {
			if i > 0 {
				dst = append(dst, between...)
			}
			s.Use(func(b []byte) { dst = appendForm(dst, b) })
		}
		return dst
	}
}
