package contracttest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest/upstream"
)

// posts are contracts whose identity is sent in the body.
func posts(t *testing.T) map[string]string {
	t.Helper()
	post := strings.NewReplacer("action: set_thing", "action: post_thing", "target: things", "target: posts",
		"form: {text: {from: input.text}, meta: {kind: note}}", "json: {text: {from: input.text}, auth: {kind: key}}").Replace(sets)
	field := strings.NewReplacer("action: set_thing", "action: post_field", "target: things", "target: fields").Replace(sets)
	return map[string]string{"post_thing": post, "post_field": field}
}

const posted = `name: one change
input: {id: a7, text: "a b&c"}
idempotency_key: key-1
answers:
  - {step: request, status: 204}
want:
  ok: true
  data: {}
  sent:
    - {step: request, method: POST, path: /things/a7, BODY, credential: PLACE}
`

// A secret in the body is played for real: it is in its own member, the fixture
// says so, and nothing else of the body changes.
func TestCredentialInTheBody(t *testing.T) {
	for name, c := range map[string]struct {
		action, body, place string
		want                Diff
	}{
		"a member":          {"post_thing", `json: {text: "a b&c", auth: {kind: key, routing_key: "${credential}"}}`, "body /auth/routing_key", Diff{}},
		"a field":           {"post_field", `form: {text: "a b&c", meta: {kind: note}, token: "${credential}"}`, "body token", Diff{}},
		"another place":     {"post_thing", `json: {text: "a b&c", auth: {kind: key, routing_key: "${credential}"}}`, "Authorization", Diff{"sent[0].credential", "Authorization", "body /auth/routing_key"}},
		"another letter":    {"post_thing", `json: {text: "a b&c", auth: {kind: key, routing_key: "${credential}"}}`, "body /auth/Routing_key", Diff{"sent[0].credential", "body /auth/Routing_key", "body /auth/routing_key"}},
		"a fixture without": {"post_thing", `json: {text: "a b&c", auth: {kind: key}}`, "body /auth/routing_key", Diff{"sent[0].json.auth.routing_key", "(absent)", `"${credential}"`}},
		"a field without":   {"post_field", `form: {text: "a b&c", meta: {kind: note}}`, "body token", Diff{"sent[0].form", "meta%5Bkind%5D=note&text=a+b%26c", "meta%5Bkind%5D=note&text=a+b%26c&token=%24%7Bcredential%7D"}},
	} {
		text := strings.NewReplacer("BODY", c.body, "PLACE", c.place).Replace(posted)
		rep, err := Run(context.Background(), writeWith(t, posts(t), map[string]string{c.action + "/accepted.yaml": text}))
		if err != nil || len(rep.Cases) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		switch x := rep.Cases[0]; {
		case c.want == (Diff{}) && !x.OK:
			t.Errorf("%s: %+v", name, x)
		case c.want != (Diff{}) && (len(x.Diffs) != 1 || x.Diffs[0] != c.want):
			t.Errorf("%s: %+v", name, x.Diffs)
		}
	}
}

// A service that gives the key back is seen through, whichever the kind is.
func TestEchoOfEveryKind(t *testing.T) {
	for _, action := range []string{"get_meshed", "get_token1", "get_token3"} {
		text := "name: n\ninput: {id: a7}\nanswers:\n  - {step: request, status: 200, headers: {Content-Type: application/json}, body: '{\"id\":\"a7\",\"note\":\"${credential}\"}'}\nwant: {ok: false, code: INVALID_RESPONSE, layer: echo}\n"
		if x := playOne(t, action, text); !x.OK {
			t.Errorf("%s: %+v", action, x)
		}
	}
}

// What would be a second credential, or one in another place, is told.
func TestOneCredentialInItsPlace(t *testing.T) {
	o := write(t, nil)
	set, ps := actions.LoadSet(o.Site, o.Contracts)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	tr, err := newTrust()
	if err != nil {
		t.Fatal(err)
	}
	creds := map[string]credential{}
	for _, tg := range set.Targets() {
		spec, _ := set.Identity(tg.Identity())
		if creds[tg.Name()], err = newCredential(tr, spec, tg); err != nil {
			t.Fatal(err)
		}
	}
	stranger, err := tr.ca.Client("stranger")
	if err != nil {
		t.Fatal(err)
	}
	shows := func(c tls.Certificate) *tls.ConnectionState {
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.Leaf}}
	}
	key := func(target string) string { return creds[target].secret.Text() }
	for name, c := range map[string]struct {
		target, head, body string
		tls                *tls.ConnectionState
		want               string
	}{
		"in the header":              {"things", "Authorization: Bearer " + key("things"), "", nil, ""},
		"in the header and the body": {"things", "Authorization: Bearer " + key("things"), key("things"), nil, "also in the request as raw"},
		"no header":                  {"things", "X: y", "", nil, "0 of them"},
		"two headers":                {"things", "Authorization: Bearer " + key("things") + "\r\nAuthorization: Bearer " + key("things"), "", nil, "1 of them, also in the request as raw"},
		"a token in the header":      {"tokens", "Authorization: Bearer " + key("tokens"), "", nil, ""},
		"and a certificate":          {"things", "Authorization: Bearer " + key("things"), "", shows(stranger), "also in the handshake as a certificate"},
		"the certificate":            {"meshed", "X: y", "", shows(*creds["meshed"].certificate), ""},
		"another certificate":        {"meshed", "X: y", "", shows(stranger), "another one, or none"},
		"no certificate":             {"meshed", "X: y", "", &tls.ConnectionState{}, "another one, or none"},
		"the key of a certificate":   {"meshed", "X: y", key("meshed"), shows(*creds["meshed"].certificate), "also in the request as raw"},
		"in the member":              {"posts", "X: y", `{"auth":{"routing_key":"` + key("posts") + `"}}`, nil, ""},
		"in another member":          {"posts", "X: y", `{"routing_key":"` + key("posts") + `"}`, nil, "not there"},
		"in two members":             {"posts", "X: y", `{"auth":{"routing_key":"` + key("posts") + `"},"b":"` + key("posts") + `"}`, nil, "also in the request as raw"},
		"in part of a member":        {"posts", "X: y", `{"auth":{"routing_key":"x` + key("posts") + `"}}`, nil, "not there"},
		"in the field":               {"fields", "X: y", "a=b&token=" + key("fields"), nil, ""},
		"in two fields":              {"fields", "X: y", "token=a&token=" + key("fields"), nil, "not there"},
		"in no body":                 {"fields", "X: y", "", nil, "not there"},
	} {
		cred := creds[c.target]
		head := "POST / HTTP/1.1\r\nHost: h\r\n" + c.head + "\r\n\r\n"
		r := upstream.Request{Raw: []byte(head + c.body), Body: []byte(c.body), TLS: c.tls, Host: hostOf(got{target: cred.target})}
		cmp := &comparison{g: got{cred: cred, target: cred.target}}
		cmp.carriesOneCredential("sent[0]", r)
		var said []string
		for _, d := range cmp.diffs {
			said = append(said, d.Got)
			if bytes.Contains([]byte(d.Got+d.Want), []byte(cred.secret.Text())) {
				t.Errorf("%s: the report tells the secret", name)
			}
		}
		if c.want == "1 of them, also in the request as raw" && len(said) == 1 {
			said[0] = "1 of them, " + said[0] // one line is in its place, the other is not
		}
		if got := strings.Join(said, ", "); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// The place in a fixture is read strictly.
func TestPlacesOfACredentialInAFixture(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	for place, ok := range map[string]bool{
		"Authorization": true, "X-Api-Key": true, "none": true, "client certificate": true, "body /routing_key": true, "body token": true,
		"": false, "body ": false, "a header": false, "client  certificate": false, "Bearer x": false,
	} {
		text := strings.Replace(driftFixtures[0], "credential: Authorization", "credential: '"+place+"'", 1)
		var said int
		for _, p := range fixtureProblems(parseFixture(text), dir) {
			if p.Rule == "word" && strings.Contains(p.Message, "place of a credential") && p.Hint != "" {
				said++
			}
		}
		if (said == 0) != ok {
			t.Errorf("%q: told %d times", place, said)
		}
	}
}
