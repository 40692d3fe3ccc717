package vault

import (
	"bytes"
	"errors"
	"fmt"

	"chatelaine/internal/secret"
)

// grant is what the secret of kind oauth2_refresh holds: the refresh token, and
// the client's secret where the client has one. A client without one has the
// refresh token alone as its secret; else it is a JSON object of both.
type grant struct {
	refresh, client secret.Secret
}

var (
	errGrantJSON = errors.New(`the secret must be a JSON object with "refresh_token" and "client_secret", since the client shows a secret of its own; with auth: none it is the refresh token alone`)
	errGrantText = errors.New("the refresh token must be visible ASCII (RFC 6749, appendix A.17)")
)

// checkGrant says whether a secret of kind oauth2_refresh can be kept.
func (b Binding) checkGrant(text []byte) error {
	g, err := parseGrant(text, b.auth())
	g.wipe()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadIdentity, err)
	}
	return nil
}

// auth is how the client shows who it is; a site file that is silent means basic.
func (b Binding) auth() string {
	if a := b.Param("auth"); a != "" {
		return a
	}
	return authBasic
}

func (g grant) wipe() {
	g.refresh.Wipe()
	g.client.Wipe()
}

// readGrant reads the secret. Other members are let through: what a provider's own
// tool writes down has more of them.
func readGrant(s secret.Secret, auth string) (grant, error) {
	var g grant
	var err error
	s.Use(func(text []byte) { g, err = parseGrant(text, auth) })
	if err != nil {
		g.wipe()
		return grant{}, err
	}
	return g, nil
}

func parseGrant(text []byte, auth string) (g grant, err error) {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' {
		if auth != authNone {
			return grant{}, errGrantJSON
		}
		g.refresh = secret.New(text)
		return g, g.check(auth)
	}
	m, err := readObject(text)
	if err != nil {
		return grant{}, errGrantJSON
	}
	defer m.wipe()
	if t, ok := m.str("refresh_token"); ok {
		g.refresh = secret.New(t)
	}
	if t, ok := m.str("client_secret"); ok && auth != authNone {
		g.client = secret.New(t)
	}
	return g, g.check(auth)
}

func (g grant) check(auth string) error {
	if g.refresh.IsZero() || auth != authNone && g.client.IsZero() {
		return errGrantJSON
	}
	ok := false
	g.refresh.Use(func(b []byte) { ok = visible(b, ' ') })
	if !ok {
		return errGrantText
	}
	return nil
}

// renewed is the secret that takes the place of the one that g was read from, in a
// form that reads as the very same token. fresh is wiped where it is not the secret
// itself. It fails where the two are longer together than a secret may be.
func (g grant) renewed(fresh secret.Secret) (out secret.Secret, err error) {
	fresh.Use(func(r []byte) {
		if g.client.IsZero() && plainGrant(r) {
			out = fresh
			return
		}
		g.client.Use(func(c []byte) {
			b := make([]byte, 0, grantRoom+(len(r)+len(c))*len(`\u0000`))
			b = appendJSON(append(b, `{"refresh_token":`...), r)
			if len(c) > 0 {
				b = appendJSON(append(b, `,"client_secret":`...), c)
			}
			b = append(b, '}')
			if len(b) > maxSecret {
				err = errGrantLong
			} else {
				out = secret.New(b)
			}
			clear(b)
		})
	})
	if !out.Equal(fresh) {
		fresh.Wipe()
	}
	return out, err
}

// grantRoom is what the names of a grant's members take.
const grantRoom = 64

var errGrantLong = fmt.Errorf("the server's new refresh token and the client's secret are together longer than %d bytes", maxSecret)

// plainGrant says whether a refresh token can be kept as it is, and is not taken for
// an object or for one with less space around it.
func plainGrant(text []byte) bool {
	return len(bytes.TrimSpace(text)) == len(text) && len(text) > 0 && text[0] != '{'
}

// appendJSON appends text as a JSON string; it was read from one, or is visible
// ASCII.
func appendJSON(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// visible says whether text is visible ASCII, or the one byte that is allowed
// beside it.
func visible(text []byte, also byte) bool {
	for _, c := range text {
		if (c < 0x21 || c > 0x7e) && c != also {
			return false
		}
	}
	return len(text) > 0
}
