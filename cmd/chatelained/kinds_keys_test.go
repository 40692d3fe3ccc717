package main_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"chatelaine/internal/client"
)

// appContract is a read of one repository.
const appContract = `contract: v1
action: use_app
version: 1.0.0
summary: Use one repository.
owner: tests
effect: read
input: {type: object, additionalProperties: false, required: [repo], properties: {repo: {type: string}}}
route: {by: repo, list: repositories}
request:
  method: GET
  path: /repos/{target.repo}
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [state], properties: {state: {const: fine}}}
      success: {state: /state}
result: {type: object, additionalProperties: false, required: [state], properties: {state: {const: fine}}}
`

// keyPEM is the key that signs for the kinds that assert who they are.
func (l *login) keyPEM(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(l.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// installation answers an app as GitHub does: it checks the assertion and gives a
// token for what was asked for, and nothing more.
func (l *login) installation(w http.ResponseWriter, q sentOne) {
	var claims struct {
		Issuer  string `json:"iss"`
		Expires int64  `json:"exp"`
	}
	signed, err := jose.ParseSignedCompact(strings.TrimPrefix(q.auth, "Bearer "), []jose.SignatureAlgorithm{jose.RS256})
	if err == nil {
		var payload []byte
		if payload, err = signed.Verify(l.key.Public()); err == nil {
			err = json.Unmarshal(payload, &claims)
		}
	}
	if err != nil || claims.Issuer != "12345" || claims.Expires > time.Now().Add(10*time.Minute).Unix() || q.path != "/app/installations/678/access_tokens" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var want struct {
		Repositories []string          `json:"repositories"`
		Permissions  map[string]string `json:"permissions"`
	}
	if err := json.Unmarshal([]byte(q.body), &want); err != nil || len(want.Repositories) != 1 {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	token := "ghs_installation-planted-" + want.Repositories[0] + fmt.Sprint(len(l.secrets()))
	l.gave(token)
	permissions, err := json.Marshal(want.Permissions)
	if err != nil {
		panic(err) // text by text
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"token":%q,"expires_at":%q,"permissions":%s,"repository_selection":"selected"}`, token, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), permissions)
}

// appTokens: a token is for the one repository of its call, and of a read it is for
// reading, whatever the app may do.
func (k *kinds) appTokens(t *testing.T, a *client.Agent) {
	for i, repo := range []string{"api", "web", "api"} {
		if e := k.call(a, "use_app", fmt.Sprintf("app-%04d-%s", i, repo), fmt.Sprintf(`{"repo":%q}`, repo)); !e.OK {
			t.Fatalf("answered %s", e.Raw)
		}
		sent := k.services.take()
		if len(sent) != 1 || sent[0].path != "/app/repos/"+repo || !strings.HasPrefix(sent[0].auth, "Bearer ghs_installation-planted-"+repo) {
			t.Errorf("sent %+v", sent)
		}
		exchanges := k.github.take()
		if i == 2 {
			if len(exchanges) != 0 {
				t.Errorf("%d exchanges for a token that is there", len(exchanges))
			}
			continue
		}
		if len(exchanges) != 1 || !strings.Contains(exchanges[0].body, fmt.Sprintf(`"repositories":[%q]`, repo)) || !strings.Contains(exchanges[0].body, `"permissions":{"contents":"read"}`) {
			t.Errorf("exchanged by %+v", exchanges)
		}
	}
}

// robotToken: a signed assertion is exchanged at a real server, and the key goes
// nowhere.
func (k *kinds) robotToken(t *testing.T, a *client.Agent) {
	k.fine(a, "robot", "robot-0001")
	exchanges := k.tokens.take()
	if len(exchanges) != 1 || !strings.Contains(exchanges[0].body, "assertion=") || exchanges[0].auth != "" {
		t.Errorf("exchanged by %+v", exchanges)
	}
	k.login.mu.Lock()
	last := k.login.access[len(k.login.access)-1]
	k.login.mu.Unlock()
	k.one(k.services, last)
}

// answer answers a call as the test says.
func (k *kinds) answer(w http.ResponseWriter, q sentOne) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.before != nil {
		k.before()
	}
	if k.stale && q.auth != "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if k.echo {
		w.Header().Set("X-You-Sent", q.auth)
	}
	_, _ = io.WriteString(w, `{"state":"fine"}`)
}
