package vault

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

// withToken is a good answer but for one change.
func withToken(more string) string {
	return `{"access_token":"` + firstToken + `","token_type":"Bearer"` + more + `}`
}

func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		status int
		body   string
		code   fault.Code
		life   time.Duration
	}{
		"whole":                {200, withToken(`,"expires_in":120,"scope":"x","other":{"a":[1]}`), "", 2 * time.Minute},
		"silent about its end": {200, withToken(""), "", lifeUnsaid},
		"null for its end":     {200, withToken(`,"expires_in":null`), "", lifeUnsaid},
		"a year":               {200, withToken(`,"expires_in":31536000`), "", longestLife},
		"the largest number":   {200, withToken(`,"expires_in":9999999999`), "", longestLife},
		"any case of Bearer":   {200, `{"access_token":"` + firstToken + `","token_type":"bEARER"}`, "", lifeUnsaid},

		"negative":             {200, withToken(`,"expires_in":-1`), fault.InvalidResponse, 0},
		"nothing":              {200, withToken(`,"expires_in":0`), fault.InvalidResponse, 0},
		"text":                 {200, withToken(`,"expires_in":"3600"`), fault.InvalidResponse, 0},
		"1e99":                 {200, withToken(`,"expires_in":1e99`), fault.InvalidResponse, 0},
		"a fraction":           {200, withToken(`,"expires_in":3600.5`), fault.InvalidResponse, 0},
		"eleven digits":        {200, withToken(`,"expires_in":99999999999`), fault.InvalidResponse, 0},
		"a list":               {200, withToken(`,"expires_in":[3600]`), fault.InvalidResponse, 0},
		"a page":               {200, "<html>PLANTED</html>", fault.InvalidResponse, 0},
		"empty":                {200, "", fault.InvalidResponse, 0},
		"an empty object":      {200, "{}", fault.InvalidResponse, 0},
		"two members":          {200, withToken(`,"access_token":"` + firstToken + `"`), fault.InvalidResponse, 0},
		"half":                 {200, withToken("")[:40], fault.InvalidResponse, 0},
		"a tail":               {200, withToken("") + "PLANTED", fault.InvalidResponse, 0},
		"no type":              {200, `{"access_token":"` + firstToken + `"}`, fault.InvalidResponse, 0},
		"mac":                  {200, `{"access_token":"` + firstToken + `","token_type":"mac"}`, fault.InvalidResponse, 0},
		"a type that is none":  {200, `{"access_token":"` + firstToken + `","token_type":1}`, fault.InvalidResponse, 0},
		"a control character":  {200, `{"access_token":"PLANTED\u000aX-Evil: 1","token_type":"Bearer"}`, fault.InvalidResponse, 0},
		"a zero byte":          {200, `{"access_token":"PLANTED-\u0000-token","token_type":"Bearer"}`, fault.InvalidResponse, 0},
		"a space":              {200, `{"access_token":"PLANTED token of two","token_type":"Bearer"}`, fault.InvalidResponse, 0},
		"another alphabet":     {200, `{"access_token":"PLANTED-é-token","token_type":"Bearer"}`, fault.InvalidResponse, 0},
		"100 KB":               {200, `{"access_token":"` + long + `","token_type":"Bearer"}`, fault.InvalidResponse, 0},
		"short":                {200, `{"access_token":"x","token_type":"Bearer"}`, fault.InvalidResponse, 0},
		"a number":             {200, `{"access_token":12345678901234567890,"token_type":"Bearer"}`, fault.InvalidResponse, 0},
		"a bad refresh token":  {200, withToken(`,"refresh_token":"PLANTED\u0007"`), fault.InvalidResponse, 0},
		"a refresh list":       {200, withToken(`,"refresh_token":["PLANTED"]`), fault.InvalidResponse, 0},
		"a long refresh token": {200, withToken(`,"refresh_token":"` + long + `"`), fault.InvalidResponse, 0},
		"an error with 200":    {200, `{"error":"invalid_client","error_description":"PLANTED"}`, fault.RemoteUnauthenticated, 0},
		"another with 200":     {200, `{"error":"PLANTED"}`, fault.InvalidResponse, 0},

		"created":            {201, withToken(""), fault.InvalidResponse, 0},
		"no content":         {204, "", fault.InvalidResponse, 0},
		"moved":              {302, "", fault.InvalidResponse, 0},
		"not modified":       {304, "", fault.InvalidResponse, 0},
		"bad request":        {400, "PLANTED", fault.InvalidResponse, 0},
		"an error of nobody": {400, `{"error":"PLANTED"}`, fault.InvalidResponse, 0},
		"two errors":         {400, `{"error":"invalid_grant","error":"PLANTED"}`, fault.InvalidResponse, 0},
		"invalid_client":     {400, `{"error":"invalid_client","error_description":"PLANTED"}`, fault.RemoteUnauthenticated, 0},
		"invalid_grant":      {400, `{"error":"invalid_grant"}`, fault.RemoteUnauthenticated, 0},
		"invalid_scope":      {400, `{"error":"invalid_scope"}`, fault.RemoteUnauthenticated, 0},
		"try later":          {400, `{"error":"temporarily_unavailable"}`, fault.UpstreamUnavailable, 0},
		"unauthorized":       {401, "PLANTED", fault.RemoteUnauthenticated, 0},
		"forbidden":          {403, "<html>PLANTED", fault.RemoteUnauthenticated, 0},
		"not found":          {404, "PLANTED", fault.InvalidResponse, 0},
		"slow down":          {429, `{"error":"PLANTED"}`, fault.RemoteRateLimited, 0},
		"an error inside":    {500, "PLANTED", fault.UpstreamUnavailable, 0},
		"down":               {503, `{"error":"invalid_grant"}`, fault.UpstreamUnavailable, 0},
		"a status of nobody": {999, "PLANTED", fault.InvalidResponse, 0},
		"a status below":     {101, "PLANTED", fault.InvalidResponse, 0},
	} {
		m, err := oauthRules.read(jsonAnswer(c.status, c.body))
		if fault.CodeOf(err) != c.code || m.life != c.life || (err == nil) != (m.token.Len() > 0) {
			t.Errorf("%s: got %v for %s, want %q for %s", name, err, m.life, c.code, c.life)
		}
		refuseTokens(t, err)
		m.wipe()
	}
}

func TestAnswerHeaders(t *testing.T) {
	for name, h := range map[string]http.Header{
		"no type":        {},
		"two types":      {"Content-Type": {"application/json", "text/html"}},
		"a page":         {"Content-Type": {"text/html"}},
		"a form":         {"Content-Type": {"application/x-www-form-urlencoded"}},
		"no type at all": {"Content-Type": {";;"}},
		"gzip":           {"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}},
	} {
		_, err := oauthRules.read(TokenAnswer{200, h, []byte(withToken(""))})
		if fault.CodeOf(err) != fault.InvalidResponse {
			t.Errorf("%s: %v", name, err)
		}
		refuseTokens(t, err)
	}
	if _, err := oauthRules.read(TokenAnswer{200, http.Header{"Content-Type": {"application/vnd.x+json"}}, []byte(withToken(""))}); err != nil {
		t.Error(err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "Mon, 30 Nov 2026 12:01:00 GMT": time.Minute, "Mon, 30 Nov 2026 11:00:00 GMT": 0,
		"-1": 0, "soon": 0, "99999999999999999999999": 0, "999999999999": longestWait,
	} {
		if d, _ := retryAfter(http.Header{"Retry-After": {text}}, now); d != want {
			t.Errorf("%q is %s, want %s", text, d, want)
		}
	}
	_, err := oauthRules.read(TokenAnswer{429, http.Header{"Retry-After": {"30"}}, nil})
	if d := fault.From(err).RetryAfter(); d != 30*time.Second {
		t.Errorf("the agent is told to wait %s", d)
	}
	if d, ok := retryAfter(http.Header{"Retry-After": {"1", "2"}}, now); ok {
		t.Errorf("two say %s", d)
	}
}

// A token that is the secret, or holds it, would show the target what only the
// endpoint may see.
func TestTokenIsNotTheSecret(t *testing.T) {
	for name, c := range map[string]struct {
		b    Binding
		text string
	}{
		"client secret": {tokenBinding(KindOAuth2Client, map[string]string{"client_id": "c", "auth": "body"}), firstRefresh},
		"refresh token": {refreshBinding(), firstRefresh},
	} {
		e := says(jsonAnswer(200, fmt.Sprintf(`{"access_token":"x-%s-x","token_type":"Bearer"}`, firstRefresh)))
		_, err := exchangingOf(c.b, c.text, e.exchange).run(t.Context())
		if fault.CodeOf(err) != fault.InvalidResponse {
			t.Errorf("%s: %v", name, err)
		}
		refuseTokens(t, err)
	}
	e := &endpoint{}
	e.answer = func(_ int, s sent) (TokenAnswer, error) {
		_, assertion, _ := strings.Cut(s.whole, "assertion=")
		return jsonAnswer(200, `{"access_token":"`+assertion+`","token_type":"Bearer"}`), nil
	}
	b := tokenBinding(KindJWTBearer, map[string]string{"issuer": "i", "algorithm": "ES256"})
	_, err := exchangingOf(b, keyPEM(t, testKeys()["ES256"]), e.exchange).run(t.Context())
	if fault.CodeOf(err) != fault.InvalidResponse {
		t.Errorf("the assertion as the token: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(withToken(`,"expires_in":120,"refresh_token":"abc"`)))
	f.Add(400, []byte(`{"error":"invalid_grant"}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		m, err := oauthRules.read(TokenAnswer{status, http.Header{"Content-Type": {"application/json"}}, body})
		if err == nil && (status != 200 || m.life <= 0 || m.life > longestLife || m.token.Len() < minToken) {
			t.Errorf("status %d, %q is good for %s", status, body, m.life)
		}
		if err != nil && m.token.Len() > 0 {
			t.Errorf("%v, and a token is left", err)
		}
	})
}
