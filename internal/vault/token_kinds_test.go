package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"chatelaine/internal/fault"
)

// One exchange of each kind, as it leaves: where to, in what form, and the secret in
// its one place.
func TestClientCredentials(t *testing.T) {
	more := map[string]string{"client_id": "client one", "scopes": "deploy read", "audience": "https://api.example", "resource": "https://api.example/v1"}
	for auth, want := range map[string]struct{ authorization, body string }{
		// Both parts are encoded as in a form before they are joined: RFC 6749 section 2.3.1.
		"basic": {"Basic Y2xpZW50K29uZTpDcy03RmpmcDBaQnIxS3REUmJuZlZkbUl3JTJGJTJCKyUyNiUyNSVDMyVBOQ==",
			"grant_type=client_credentials&scope=deploy+read&audience=https%3A%2F%2Fapi.example&resource=https%3A%2F%2Fapi.example%2Fv1"},
		"body": {"", "grant_type=client_credentials&scope=deploy+read&audience=https%3A%2F%2Fapi.example&resource=https%3A%2F%2Fapi.example%2Fv1&client_id=client+one&client_secret=Cs-7Fjfp0ZBr1KtDRbnfVdmIw%2F%2B+%26%25%C3%A9"},
	} {
		e := grants()
		more["auth"] = auth
		m, err := exchangingOf(tokenBinding(KindOAuth2Client, more), clientSecret, e.exchange).run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := e.last()
		if s.authorization != want.authorization || s.whole != want.body || s.To.Host != "login.example" || s.Step != StepToken || s.Identity != "a" || s.Generation != 7 {
			t.Errorf("%s: sent %q, %q, %+v", auth, s.authorization, s.whole, s.TokenRequest)
		}
		if strings.Contains(string(s.Body)+s.Query+s.Path, "7Fjfp0") {
			t.Error("the request holds the secret beside its place")
		}
		if !m.token.Equal(sec(tokenOf(1))) {
			t.Error("another token came back")
		}
	}
}

// The encoder of bytes is the standard library's of strings.
func FuzzForm(f *testing.F) {
	f.Add("a b+c%&=é\x00~*")
	f.Fuzz(func(t *testing.T, s string) {
		if got := string(appendForm(nil, []byte(s))); got != url.QueryEscape(s) {
			t.Errorf("%q is %s, there %s", s, got, url.QueryEscape(s))
		}
	})
}

// What takes a refresh token's place keeps the client's secret beside it, to the
// byte.
func FuzzGrant(f *testing.F) {
	f.Add("rt", clientSecret)
	f.Add(`q"\`, "\t\x01é\"")
	f.Fuzz(func(t *testing.T, refresh, client string) {
		text, err := json.Marshal(map[string]string{"refresh_token": refresh, "client_secret": client})
		if err != nil || client == "" {
			return
		}
		g, err := parseGrant(text, authBasic)
		if err != nil {
			return
		}
		renewed, err := g.renewed(sec("fresh token"))
		if errors.Is(err, errGrantLong) {
			return
		}
		again, err := readGrant(renewed, authBasic)
		if err != nil || !again.refresh.Equal(sec("fresh token")) || !again.client.Equal(g.client) {
			t.Fatalf("%q, %q: %v", refresh, client, err)
		}
	})
}

func TestRefreshTokenForms(t *testing.T) {
	both := `{"refresh_token":"` + firstRefresh + `","client_secret":"s"}`
	for name, c := range map[string]struct {
		auth, text string
		ok         bool
	}{
		"alone, public client":    {"none", firstRefresh, true},
		"JSON, public client":     {"none", "{\n \"refresh_token\": \"" + firstRefresh + "\"\n}\n", true},
		"both, with more members": {"basic", `{"type":"authorized_user","client_id":"x","client_secret":"s","refresh_token":"` + firstRefresh + `"}`, true},
		"both in the body":        {"body", both, true},
		"alone, where two":        {"basic", firstRefresh, false},
		"no client secret":        {"body", `{"refresh_token":"` + firstRefresh + `"}`, false},
		"no refresh token":        {"none", `{"client_secret":"s3cr3t-s3cr3t-s3cr3t"}`, false},
		"twice":                   {"none", `{"refresh_token":"` + firstRefresh + `","refresh_token":"x"}`, false},
		"a line end":              {"none", firstRefresh + "\nmore", false},
		"cut":                     {"basic", both[:len(both)-1], false},
	} {
		b := tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": "c", "auth": c.auth})
		err := b.checkSecret([]byte(c.text), false)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		refuseTokens(t, err)
	}
}

// jwtOf verifies an assertion and returns what it says.
func jwtOf(t testing.TB, text, alg string) (map[string]any, string) {
	t.Helper()
	parsed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := parsed.Verify(testKeys()[alg].Public())
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(payload, &c); err != nil {
		t.Fatal(err)
	}
	return c, parsed.Signatures[0].Header.KeyID
}

func TestJWTBearer(t *testing.T) {
	for alg, key := range testKeys() {
		e := grants()
		b := tokenBinding(KindJWTBearer, map[string]string{"issuer": "robot@example", "scopes": "one two", "algorithm": alg, "key_id": "k7"})
		if _, err := exchangingOf(b, keyPEM(t, key), e.exchange).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		form, err := url.ParseQuery(e.last().whole)
		if err != nil || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || form.Get("scope") != "one two" || e.last().authorization != "" {
			t.Errorf("sent %q, %v", e.last().whole, err)
		}
		c, id := jwtOf(t, form.Get("assertion"), alg)
		iat, exp := int64(c["iat"].(float64)), int64(c["exp"].(float64))
		if id != "k7" || c["iss"] != "robot@example" || c["sub"] != "robot@example" || c["aud"] != "https://login.example/oauth2/token" || c["scope"] != "one two" || len(c["jti"].(string)) < 20 {
			t.Errorf("it says %v, key %q", c, id)
		}
		if now := time.Now().Unix(); iat > now-int64(assertionSkew/time.Second) || exp <= now || exp-iat > 3600 {
			t.Errorf("from %d to %d at %d", iat, exp, now)
		}
		again := e.last().whole
		if _, err := exchangingOf(b, keyPEM(t, key), e.exchange).run(t.Context()); err != nil || e.last().whole == again {
			t.Errorf("the same assertion twice, %v", err)
		}
	}
	b := tokenBinding(KindJWTBearer, map[string]string{"issuer": "i", "subject": "s", "audience": "a", "algorithm": "RS256"})
	service, _ := json.Marshal(map[string]string{"type": "service_account", "private_key": keyPEM(t, testKeys()["RS256"]), "private_key_id": "google-1"})
	e := grants()
	if _, err := exchangingOf(b, string(service), e.exchange).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	form, _ := url.ParseQuery(e.last().whole)
	if c, id := jwtOf(t, form.Get("assertion"), "RS256"); c["sub"] != "s" || c["aud"] != "a" || id != "google-1" || c["scope"] != nil {
		t.Errorf("it says %v, key %q", c, id)
	}
}

func githubBinding(repositories, permissions string) Binding {
	m := map[string]string{"app_id": "12345", "installation": "678"}
	if repositories != "" {
		m["repositories"] = repositories
	}
	if permissions != "" {
		m["permissions"] = permissions
	}
	return tokenBinding(KindGitHubApp, m)
}

func installation(permissions, more string) *endpoint {
	end := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	return says(jsonAnswer(201, fmt.Sprintf(`{"token":"%s","expires_at":"%s","permissions":%s%s}`, firstToken, end, permissions, more)))
}

func TestGitHubApp(t *testing.T) {
	for name, c := range map[string]struct {
		repositories, permissions string
		n                         Narrow
		body, answered            string
	}{
		"whole":         {"", "", Narrow{}, `{}`, `{"contents":"write"}`},
		"named":         {`["api","web"]`, `{"contents":"write"}`, Narrow{}, `{"repositories":["api","web"],"permissions":{"contents":"write"}}`, `{"contents":"write","metadata":"read"}`},
		"a read":        {`["api"]`, `{"contents":"write","issues":"read","administration":"admin"}`, Narrow{ReadOnly: true}, `{"repositories":["api"],"permissions":{"administration":"read","contents":"read","issues":"read"}}`, `{"contents":"read"}`},
		"the target's":  {`{"from":"target.repo"}`, `{"contents":"write"}`, Narrow{Repositories: []string{"api"}}, `{"repositories":["api"],"permissions":{"contents":"write"}}`, `{"contents":"write"}`},
		"one of a list": {`["api","web"]`, "", Narrow{Repositories: []string{"web"}}, `{"repositories":["web"]}`, `{}`},
	} {
		named := ""
		if strings.Contains(c.body, `"api"`) {
			named = `,"repositories":[ {"id":1,"name":"API","owner":{"login":"acme"}} ]`
		}
		e := installation(c.answered, `,"repository_selection":"selected"`+named)
		x := exchangingOf(githubBinding(c.repositories, c.permissions), keyPEM(t, testKeys()["RS256"]), e.exchange)
		x.narrow = c.n
		m, err := x.run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := e.last()
		if s.whole != c.body || s.Path != "/app/installations/678/access_tokens" || s.Method != "POST" || s.Header.Get("X-Github-Api-Version") == "" || m.life > time.Hour || m.life < 59*time.Minute {
			t.Errorf("%s: sent %s %s %s, life %s", name, s.Method, s.Path, s.whole, m.life)
		}
		c, _ := jwtOf(t, strings.TrimPrefix(s.authorization, "Bearer "), "RS256")
		now, iat, exp := float64(time.Now().Unix()), c["iat"].(float64), c["exp"].(float64)
		if c["iss"] != "12345" || iat > now-60 || iat < now-90 || exp-iat > 600 || exp <= now || len(c) != 3 {
			t.Errorf("%s: it says %v", name, c)
		}
	}
}

func TestGitHubAppRefusals(t *testing.T) {
	key := keyPEM(t, testKeys()["RS256"])
	for name, c := range map[string]struct {
		b    Binding
		n    Narrow
		e    *endpoint
		code fault.Code
	}{
		"a repository of nobody":      {githubBinding(`["api"]`, ""), Narrow{Repositories: []string{"secrets"}}, installation("{}", ""), fault.TargetNotAllowed},
		"no repository of the target": {githubBinding(`{"from":"target.repo"}`, ""), Narrow{}, installation("{}", ""), fault.TargetNotAllowed},
		"an empty repository":         {githubBinding(`{"from":"target.repo"}`, ""), Narrow{Repositories: []string{""}}, installation("{}", ""), fault.TargetNotAllowed},
		"more than asked":             {githubBinding("", `{"contents":"read"}`), Narrow{}, installation(`{"contents":"write"}`, ""), fault.InvalidResponse},
		"another permission":          {githubBinding("", `{"contents":"read"}`), Narrow{}, installation(`{"administration":"admin"}`, ""), fault.InvalidResponse},
		"an unknown level":            {githubBinding("", `{"contents":"read"}`), Narrow{}, installation(`{"contents":"own"}`, ""), fault.InvalidResponse},
		"no word of permissions":      {githubBinding("", `{"contents":"read"}`), Narrow{}, installation(`null`, ""), fault.InvalidResponse},
		"all repositories":            {githubBinding(`["api"]`, ""), Narrow{}, installation("{}", `,"repository_selection":"all"`), fault.InvalidResponse},
		"another repository":          {githubBinding(`["api"]`, ""), Narrow{}, installation("{}", `,"repositories":[{"name":"api"}, {"name":"secrets"}]`), fault.InvalidResponse},
		"a repository without a name": {githubBinding(`["api"]`, ""), Narrow{}, installation("{}", `,"repositories":[{"id":1}]`), fault.InvalidResponse},
		"repositories in a text":      {githubBinding(`["api"]`, ""), Narrow{}, installation("{}", `,"repositories":"api"`), fault.InvalidResponse},
		"repositories in numbers":     {githubBinding(`["api"]`, ""), Narrow{}, installation("{}", `,"repositories":[1]`), fault.InvalidResponse},
		"a token of the past":         {githubBinding("", ""), Narrow{}, says(jsonAnswer(201, `{"token":"`+firstToken+`","expires_at":"2016-07-11T22:14:10Z"}`)), fault.InvalidResponse},
		"a day that is none":          {githubBinding("", ""), Narrow{}, says(jsonAnswer(201, `{"token":"`+firstToken+`","expires_at":"tomorrow"}`)), fault.InvalidResponse},
		"no such installation":        {githubBinding("", ""), Narrow{}, says(jsonAnswer(404, `{"message":"PLANTED"}`)), fault.RemoteUnauthenticated},
		"not these permissions":       {githubBinding("", ""), Narrow{}, says(jsonAnswer(422, `{"message":"PLANTED"}`)), fault.RemoteUnauthenticated},
		"too many":                    {githubBinding("", ""), Narrow{}, says(TokenAnswer{403, http.Header{"X-Ratelimit-Remaining": {"0"}}, nil}), fault.RemoteRateLimited},
	} {
		x := exchangingOf(c.b, key, c.e.exchange)
		x.narrow = c.n
		_, err := x.run(t.Context())
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
		refuseTokens(t, err)
		if c.code == fault.TargetNotAllowed && c.e.count() > 0 {
			t.Errorf("%s: it was sent", name)
		}
	}
}

func registryBinding() Binding {
	return tokenBinding(KindRegistryToken, map[string]string{"username": "bot", "service": "registry.example", "scopes": "repository:team/app:pull,push repository:team/lib:pull"})
}

// registry answers the challenge, then the token.
func registry(challenge string, answer TokenAnswer) *endpoint {
	return &endpoint{answer: func(_ int, s sent) (TokenAnswer, error) {
		if s.Step == StepChallenge {
			return TokenAnswer{Status: 401, Header: http.Header{"Www-Authenticate": {challenge}}}, nil
		}
		return answer, nil
	}}
}

const goodChallenge = `Bearer realm="https://login.example/token",service="registry.example",scope="repository:other/thing:pull"`

func TestRegistryToken(t *testing.T) {
	for name, c := range map[string]struct {
		challenge, body string
		life            time.Duration
	}{
		"token":            {goodChallenge, `{"token":"` + firstToken + `","expires_in":300}`, 5 * time.Minute},
		"access_token":     {goodChallenge, `{"access_token":"` + firstToken + `"}`, time.Minute},
		"both alike":       {goodChallenge, `{"access_token":"` + firstToken + `","token":"` + firstToken + `"}`, time.Minute},
		"another spelling": {`bearer  service=registry.example , realm="https://LOGIN.example:443/token"`, `{"token":"` + firstToken + `"}`, time.Minute},
		"beside Basic":     {`Basic realm="x", Bearer realm="https://login.example/token",service="registry.example"`, `{"token":"` + firstToken + `"}`, time.Minute},
	} {
		e := registry(c.challenge, jsonAnswer(200, c.body))
		m, err := exchangingOf(registryBinding(), "pass word of the registry", e.exchange).run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		first, s := e.got[0], e.last()
		if first.Step != StepChallenge || first.authorization != "" || first.To.Host != "deploy.example" || first.Path != "/v2/" || first.Query != "" {
			t.Errorf("%s: asked %+v", name, first)
		}
		q, _ := url.ParseQuery(s.Query)
		if s.Method != "GET" || s.Path != "/token" || q.Get("service") != "registry.example" || len(q["scope"]) != 2 || q["scope"][0] != "repository:team/app:pull,push" ||
			s.authorization != "Basic Ym90OnBhc3Mgd29yZCBvZiB0aGUgcmVnaXN0cnk=" || s.whole != "" {
			t.Errorf("%s: sent %+v", name, s)
		}
		if m.life != c.life || !m.token.Equal(sec(firstToken)) {
			t.Errorf("%s: good for %s", name, m.life)
		}
	}
}

func TestRegistryRefusals(t *testing.T) {
	good := jsonAnswer(200, `{"token":"`+firstToken+`"}`)
	for name, c := range map[string]struct {
		e    *endpoint
		code fault.Code
	}{
		"another realm":       {registry(`Bearer realm="https://evil.example/token",service="registry.example"`, good), fault.TargetNotAllowed},
		"another path":        {registry(`Bearer realm="https://login.example/token2",service="registry.example"`, good), fault.TargetNotAllowed},
		"another port":        {registry(`Bearer realm="https://login.example:444/token",service="registry.example"`, good), fault.TargetNotAllowed},
		"no encryption":       {registry(`Bearer realm="http://login.example/token",service="registry.example"`, good), fault.TargetNotAllowed},
		"a user in the realm": {registry(`Bearer realm="https://PLANTED@login.example/token",service="registry.example"`, good), fault.TargetNotAllowed},
		"a query":             {registry(`Bearer realm="https://login.example/token?a=b",service="registry.example"`, good), fault.TargetNotAllowed},
		"another service":     {registry(`Bearer realm="https://login.example/token",service="PLANTED"`, good), fault.TargetNotAllowed},
		"no service":          {registry(`Bearer realm="https://login.example/token"`, good), fault.TargetNotAllowed},
		"no realm":            {registry(`Bearer service="registry.example"`, good), fault.InvalidResponse},
		"two realms":          {registry(goodChallenge+`,realm="https://evil.example/token"`, good), fault.InvalidResponse},
		"two challenges":      {registry(goodChallenge+`, Bearer realm="https://evil.example/token"`, good), fault.InvalidResponse},
		"an escape":           {registry(`Bearer realm="https://login.example/to\ken",service="registry.example"`, good), fault.InvalidResponse},
		"Basic alone":         {registry(`Basic realm="https://login.example/token"`, good), fault.InvalidResponse},
		"an open quote":       {registry(`Bearer realm="https://login.example/token`, good), fault.InvalidResponse},
		"nothing":             {registry("", good), fault.InvalidResponse},
		"no challenge":        {says(jsonAnswer(200, "{}")), fault.InvalidResponse},
		"down":                {says(jsonAnswer(503, "PLANTED")), fault.UpstreamUnavailable},
		"forbidden":           {says(jsonAnswer(403, "PLANTED")), fault.RemoteUnauthenticated},
		"two tokens":          {registry(goodChallenge, jsonAnswer(200, `{"token":"`+firstToken+`","access_token":"`+firstToken+`2"}`)), fault.InvalidResponse},
		"a wrong password":    {registry(goodChallenge, jsonAnswer(401, `{"details":"PLANTED"}`)), fault.RemoteUnauthenticated},
		"from a cache, over":  {registry(goodChallenge, TokenAnswer{200, http.Header{"Content-Type": {"application/json"}, "Date": {"Mon, 30 Nov 2026 12:02:00 GMT"}}, []byte(`{"token":"` + firstToken + `","issued_at":"2026-11-30T12:00:00Z"}`)}), fault.InvalidResponse},
	} {
		_, err := exchangingOf(registryBinding(), "pass word of the registry", c.e.exchange).run(t.Context())
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
		refuseTokens(t, err)
		for _, s := range c.e.got {
			if c.code == fault.TargetNotAllowed && s.authorization != "" {
				t.Errorf("%s: the password was sent", name)
			}
		}
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(goodChallenge)
	f.Add(`Basic realm="x", Bearer realm=y`)
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := bearerChallenge([]string{s})
		if ok && (got["realm"] == "" || !strings.Contains(s, got["realm"]) || !strings.Contains(strings.ToLower(s), "bearer")) {
			t.Errorf("%q gives %v", s, got)
		}
	})
}

// The secret goes to the place of the exchange alone, the token to the target alone.
func TestEachGoesToItsPlace(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", clientSecret, clientBinding())
	e := grants()
	for name, change := range map[string]func(*Made){
		"the target":     func(m *Made) { *m = madeFor(clientBinding()) },
		"another host":   func(m *Made) { m.Host = "login2.example" },
		"another port":   func(m *Made) { m.Port = 444 },
		"another path":   func(m *Made) { m.BasePath = "/oauth2/token/deeper" },
		"another CA":     func(m *Made) { m.CADigest = "sha256:00" },
		"no encryption":  func(m *Made) { m.Scheme = "http" },
		"the path above": func(m *Made) { m.BasePath = "/oauth2" },
	} {
		e.made = func(r TokenRequest) Made {
			m := madeAt(r.To)
			change(&m)
			return m
		}
		v.tokens.drop(allTokens, errLocked())
		_, err := carried(t, v, "a", e.exchange)
		wantCode(t, err, fault.TargetNotAllowed)
		if e.count() > 0 {
			t.Errorf("%s: it was sent", name)
		}
	}
	e.made = nil
	v.tokens.drop(allTokens, errLocked())
	l := tokenLease(t, v, "a")
	h := headers{}
	wantCode(t, l.Attach(h, madeFor(clientBinding())), fault.Internal) // nobody asked for a token
	if err := l.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
		t.Fatal(err)
	}
	wantCode(t, l.Attach(h, madeAt(*clientBinding().Token)), fault.TargetNotAllowed)
	if len(h) > 0 {
		t.Errorf("attached %v", h)
	}
}

// Answers are searched for the token that was attached, and by what only it holds:
// two tokens of one server begin alike.
func TestScanLooksForTheToken(t *testing.T) {
	head := "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUifQ."
	token, other := head+strings.Repeat("aB3_", 20), head+strings.Repeat("zY9-", 20)
	v, _ := create(t, cheap)
	put(t, v, "a", clientSecret, clientBinding())
	e := says(jsonAnswer(200, `{"access_token":"`+token+`","token_type":"Bearer"}`))
	l := tokenLease(t, v, "a")
	if len(l.Scan([]byte(token))) > 0 {
		t.Error("found before it was there")
	}
	if err := l.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
		t.Fatal(err)
	}
	if len(l.Scan([]byte(token))) == 0 || len(l.Scan([]byte("x"+token[len(token)-20:]))) == 0 {
		t.Error("the token is not found")
	}
	if hits := l.Scan([]byte(other)); len(hits) > 0 {
		t.Errorf("another token is taken for it: %v", hits)
	}
	l.Close()
	if len(l.Scan([]byte(token))) > 0 {
		t.Error("found after the lease was closed")
	}
}

// An answer that is refused is searched for what was sent.
func TestCredentialScan(t *testing.T) {
	var c TokenCredential
	send := func(b Binding, text string) {
		x := exchangingOf(b, text, nil)
		x.send = func(_ context.Context, _ TokenRequest, cred TokenCredential, read func(TokenAnswer) error) error {
			c = cred
			if len(c.Scan([]byte(clientSecret+firstRefresh))) == 0 {
				t.Error("what was sent is not found")
			}
			if len(c.Scan([]byte("nothing of it"))) > 0 {
				t.Error("found in nothing")
			}
			return read(jsonAnswer(500, ""))
		}
		_, err := x.run(t.Context())
		wantCode(t, err, fault.UpstreamUnavailable)
	}
	send(clientBinding(), clientSecret)
	send(refreshBinding(), firstRefresh)
	if c.Generation() != 7 {
		t.Error("the generation is not the identity's")
	}
}
