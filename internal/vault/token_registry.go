package vault

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/fault"
)

// registryToken is the way of the distribution registries' token specification:
// the registry names the place and itself in a challenge, and the place gives a
// token for Basic. Both are pinned in the identity: the challenge is compared with
// them and leads nowhere else.
func (e exchanging) registryToken(ctx context.Context) (minted, error) {
	if err := e.challenge(ctx); err != nil {
		return minted{}, err
	}
	b := e.binding
	q := url.Values{"service": {b.Param("service")}}
	if s := b.Param("scopes"); s != "" {
		q["scope"] = strings.Fields(s)
	}
	r, c := e.request("GET"), e.credential()
	r.Query = q.Encode()
	c.header = func() (value string) {
		e.secret.Use(func(s []byte) {
			name := b.Param("username") + ":"
			text := append(append(make([]byte, 0, len(name)+len(s)), name...), s...)
			value = "Basic " + base64.StdEncoding.EncodeToString(text)
			clear(text)
		})
		return value
	}
	return e.token(ctx, r, c, tokenRules{
		names: []string{"token", "access_token"}, unsaid: registryLifeUnsaid, accept: issuedBefore,
	})
}

// issuedBefore takes off the life what a token from a cache has used up.
func issuedBefore(a TokenAnswer, members jsonMembers, m *minted) error {
	text, ok := members.str("issued_at")
	date, err := http.ParseTime(a.Header.Get("Date"))
	if !ok || err != nil {
		return nil
	}
	issued, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return invalidAnswer("its issued_at is not a time")
	}
	if m.life -= max(0, date.Sub(issued)); m.life <= 0 {
		return invalidAnswer("its token has expired already")
	}
	return nil
}

// challenge asks the registry's base endpoint, without a credential, what it wants.
func (e exchanging) challenge(ctx context.Context) error {
	r := e.request("GET")
	r.Step, r.To = StepChallenge, e.binding.place()
	r.Path = strings.TrimSuffix(e.binding.BasePath, "/v2") + "/v2/"
	r.Header = http.Header{}
	c := &tokenCredential{generation: e.generation}
	return e.exchange(ctx, r, c, func(a TokenAnswer) error {
		if a.Status != http.StatusUnauthorized {
			if a.Status >= 200 && a.Status <= 299 {
				return fault.Newf(fault.InvalidResponse, "the registry asks for no token")
			}
			return tokenRules{}.refused(a, time.Now())
		}
		got, ok := bearerChallenge(a.Header.Values("Www-Authenticate"))
		switch {
		case !ok:
			return fault.Newf(fault.InvalidResponse, "the registry's challenge is not one of the scheme Bearer with a realm")
		case !e.binding.Token.is(got["realm"]):
			return fault.Newf(fault.TargetNotAllowed, "the registry names another realm than %s, where the secret may go", e.binding.Token.url())
		case got["service"] != e.binding.Param("service"):
			return fault.Newf(fault.TargetNotAllowed, "the registry calls itself by another service than %q, which the identity names", e.binding.Param("service"))
		}
		return nil
	})
}

// is says whether a realm is this place.
func (p Place) is(realm string) bool {
	u, err := url.Parse(realm)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(realm, "#") {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme == p.Scheme && strings.EqualFold(u.Hostname(), strings.Trim(p.Host, "[]")) &&
		port == strconv.Itoa(p.Port) && u.EscapedPath() == p.Path
}

// bearerChallenge reads the challenges of RFC 9110 section 11.6.1 and returns the
// parameters of the one whose scheme is Bearer. It takes fewer forms than the RFC:
// anything that two readers could take apart differently is refused.
func bearerChallenge(lines []string) (map[string]string, bool) {
	var found map[string]string
	for _, line := range lines {
		rest := strings.TrimSpace(line)
		for rest != "" {
			var scheme string
			var params map[string]string
			var ok bool
			if scheme, params, rest, ok = oneChallenge(rest); !ok {
				return nil, false
			}
			if !strings.EqualFold(scheme, "bearer") {
				continue
			}
			if found != nil {
				return nil, false
			}
			found = params
		}
	}
	return found, found["realm"] != ""
}

// oneChallenge reads a scheme and its parameters, up to the next scheme.
func oneChallenge(s string) (scheme string, params map[string]string, rest string, ok bool) {
	scheme, s = word(s)
	if scheme == "" || len(s) > 0 && s[0] != ' ' {
		return "", nil, "", false
	}
	params = map[string]string{}
	for s = strings.TrimLeft(s, " "); s != ""; {
		name, after := word(s)
		if !strings.HasPrefix(after, "=") {
			return scheme, params, s, name != "" && len(params) > 0 // the next scheme
		}
		value, after, whole := paramValue(after[1:])
		name = strings.ToLower(name)
		if _, twice := params[name]; twice || !whole || name == "" {
			return "", nil, "", false
		}
		params[name] = value
		s = strings.TrimLeft(after, " ")
		if s == "" {
			break
		}
		if s[0] != ',' {
			return "", nil, "", false
		}
		s = strings.TrimLeft(s[1:], " ")
	}
	return scheme, params, "", true
}

// word takes a token (RFC 9110 section 5.6.2) off the front.
func word(s string) (string, string) {
	i := strings.IndexFunc(s, func(c rune) bool {
		return c > 0x7e || c < 0x21 || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
	if i < 0 {
		i = len(s)
	}
	return s[:i], s[i:]
}

// paramValue takes a token or a quoted string off the front.
func paramValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		value, rest = word(s)
		return value, rest, value != ""
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return value, s[i+1:], true
		case c == '\\', c < 0x20, c > 0x7e: // nothing in a realm or a service needs an escape
			return "", "", false
		default:
			value += string(c)
		}
	}
	return "", "", false
}
