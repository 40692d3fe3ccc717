package vault

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

const (
	// lifeUnsaid is taken where an answer does not say how long its token is good:
	// short enough that a wrong guess costs one refused call.
	lifeUnsaid = 5 * time.Minute
	// registryLifeUnsaid is what the registry's specification says of silence.
	registryLifeUnsaid = time.Minute
	// longestLife caps what a server can claim. A token is fetched anew each day at
	// the least, so that what was withdrawn at the issuer ends.
	longestLife = 24 * time.Hour
	// minToken is below what any server issues. Something shorter would be found in
	// answers by chance, and the identity be suspended for it.
	minToken = 8
	// lifeDigits bounds expires_in: ten digits of seconds are three hundred years.
	lifeDigits = 10
	// longestWait caps what a server can ask for by Retry-After.
	longestWait = 24 * time.Hour
)

// tokenRules are what one kind's answers look like.
type tokenRules struct {
	names    []string // members that may hold the token; where several do, they must agree
	typed    bool     // token_type must be there
	created  bool     // the status is 201
	unsaid   time.Duration
	renews   bool // refresh_token may come
	statuses map[int]string
	// accept looks at what only this kind has, and may change the life.
	accept func(a TokenAnswer, members jsonMembers, m *minted) error
}

// oauthRules are RFC 6749 section 5.
var oauthRules = tokenRules{names: []string{"access_token"}, typed: true, unsaid: lifeUnsaid, renews: true}

// refusals are all the error codes that are passed on to the operator: RFC 6749
// section 5.2, RFC 8707 section 2, RFC 7521 section 4.1 has no further ones, and
// two of section 4.1.2.1 that servers use here too. Any other word of an endpoint
// is left out.
var refusals = map[string]fault.Code{
	"invalid_request":         fault.RemoteUnauthenticated,
	"invalid_client":          fault.RemoteUnauthenticated,
	"invalid_grant":           fault.RemoteUnauthenticated,
	"unauthorized_client":     fault.RemoteUnauthenticated,
	"unsupported_grant_type":  fault.RemoteUnauthenticated,
	"invalid_scope":           fault.RemoteUnauthenticated,
	"invalid_target":          fault.RemoteUnauthenticated,
	"access_denied":           fault.RemoteUnauthenticated,
	"server_error":            fault.UpstreamUnavailable,
	"temporarily_unavailable": fault.UpstreamUnavailable,
}

// invalidAnswer is INVALID_RESPONSE with a sentence of ours. Nothing of the answer
// may be in it.
func invalidAnswer(why string) error {
	return fault.Newf(fault.InvalidResponse, "the token endpoint's answer cannot be used: %s", why)
}

// read gives an answer its meaning. The errors hold our own words and at most a
// word of the closed list. What came in place of a refresh token is there beside an
// error too, where it can be read.
func (t tokenRules) read(a TokenAnswer) (minted, error) {
	now := time.Now()
	want := http.StatusOK
	if t.created {
		want = http.StatusCreated
	}
	if a.Status != want {
		return minted{}, t.refused(a, now)
	}
	if err := checkJSON(a.Header); err != nil {
		return minted{}, err
	}
	members, err := readObject(a.Body)
	if err != nil {
		return minted{}, invalidAnswer(err.Error())
	}
	defer members.wipe()
	m := minted{at: now}
	err = t.renewal(members, &m)
	if err == nil {
		err = t.fill(a, members, &m)
	}
	if err != nil {
		m.token.Wipe()
		return minted{refresh: m.refresh}, err
	}
	return m, nil
}

// renewal reads what takes the place of the refresh token.
func (t tokenRules) renewal(members jsonMembers, m *minted) error {
	r, there := members["refresh_token"]
	if !there || !t.renews || r.kind == jsonNull {
		return nil
	}
	if r.kind != jsonString || !visible(r.text, ' ') || len(r.text) > maxSecret {
		return invalidAnswer("its refresh_token is not 1 to 8192 visible characters")
	}
	m.refresh = secret.New(r.text)
	return nil
}

func (t tokenRules) fill(a TokenAnswer, members jsonMembers, m *minted) error {
	token, err := t.tokenOf(members)
	if err != nil {
		return err
	}
	m.token = secret.New(token)
	kind, ok := members.str("token_type")
	if (ok || t.typed) && !strings.EqualFold(string(kind), "bearer") {
		return invalidAnswer("its token_type is not Bearer")
	}
	if m.life, err = lifeOf(members["expires_in"], t.unsaid); err != nil {
		return err
	}
	if t.accept == nil {
		return nil
	}
	return t.accept(a, members, m)
}

// tokenOf finds the one token.
func (t tokenRules) tokenOf(members jsonMembers) ([]byte, error) {
	var token []byte
	for _, name := range t.names {
		v, there := members[name]
		switch {
		case !there:
			continue
		case v.kind != jsonString || !visible(v.text, 0x21) || len(v.text) < minToken || len(v.text) > maxSecret:
			return nil, invalidAnswer("its token is not 8 to 8192 visible characters without a space")
		case token != nil && string(token) != string(v.text):
			return nil, invalidAnswer("it holds two different tokens")
		}
		token = v.text
	}
	if token != nil {
		return token, nil
	}
	if word, _ := members.str("error"); refusals[string(word)] != "" { // with status 200, as some do
		return nil, fault.Newf(refusals[string(word)], "the token endpoint refused: %s", word)
	}
	return nil, invalidAnswer("it holds no token")
}

// checkJSON wants the one media type of RFC 6749 section 5.1, and no coding that
// nobody asked for.
func checkJSON(h http.Header) error {
	types := h.Values("Content-Type")
	if len(types) != 1 || len(h.Values("Content-Encoding")) > 0 {
		return invalidAnswer("it is not JSON by its Content-Type, or encoded")
	}
	media, _, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return invalidAnswer("it is not JSON by its Content-Type")
	}
	return nil
}

// lifeOf reads expires_in: whole seconds, more than none.
func lifeOf(v jsonValue, unsaid time.Duration) (time.Duration, error) {
	if v.kind == 0 || v.kind == jsonNull {
		return unsaid, nil
	}
	n, err := strconv.ParseInt(string(v.text), 10, 64)
	if v.kind != jsonNumber || len(v.text) > lifeDigits || err != nil || n <= 0 {
		return 0, invalidAnswer("its expires_in is not a whole number of seconds above zero")
	}
	return time.Duration(min(n, int64(longestLife/time.Second))) * time.Second, nil
}

// refused gives an answer without a token its code.
func (t tokenRules) refused(a TokenAnswer, now time.Time) error {
	word := ""
	if m, err := readObject(a.Body); err == nil {
		text, _ := m.str("error")
		if refusals[string(text)] != "" {
			word = string(text)
		}
		m.wipe()
	}
	wait, asked := retryAfter(a.Header, now)
	said := "status " + strconv.Itoa(a.Status)
	if word != "" {
		said += ", " + word
	}
	code := fault.InvalidResponse
	switch {
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusForbidden && (asked || a.Header.Get("X-Ratelimit-Remaining") == "0"):
		code = fault.RemoteRateLimited
	case a.Status >= 500 && a.Status <= 599, a.Status == http.StatusRequestTimeout:
		code = fault.UpstreamUnavailable
	case t.statuses[a.Status] != "":
		code, said = fault.RemoteUnauthenticated, said+": "+t.statuses[a.Status]
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden:
		code = fault.RemoteUnauthenticated
	case a.Status >= 400 && word != "":
		code = refusals[word]
	}
	if code == fault.InvalidResponse {
		return invalidAnswer(said)
	}
	return fault.Newf(code, "the token endpoint refused: %s", said).After(wait)
}

// retryAfter reads Retry-After (RFC 9110 section 10.2.3).
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	lines := h.Values("Retry-After")
	if len(lines) != 1 {
		return 0, false
	}
	seconds, err := strconv.ParseUint(lines[0], 10, 64)
	if err == nil {
		return min(time.Duration(min(seconds, uint64(longestWait/time.Second)))*time.Second, longestWait), true
	}
	if at, err := http.ParseTime(lines[0]); err == nil {
		return max(0, min(at.Sub(now), longestWait)), true
	}
	return 0, false
}
