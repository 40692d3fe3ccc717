package actions

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// bodySite gives both targets an identity in the body.
func bodySite(t *testing.T, identity string) string {
	return edit(t, goodSite, "test-bot: {kind: bearer}", "test-bot: "+identity, "prod-bot: {kind: header, name: X-Api-Key}", "prod-bot: "+identity)
}

// The credential has one place in the body, empty until the last hop, and
// nothing of it is under the digest.
func TestHoleOfABody(t *testing.T) {
	form := edit(t, goodContract, "json: {reason", "form: {reason")
	nested := edit(t, goodContract, "json: {reason: {from: input.reason}, at", "json: {auth: {kind: key}, reason: {from: input.reason}, at")
	for name, c := range map[string]struct {
		identity, contract, want string
		form                     bool
	}{
		"a member":           {"{kind: body, json: /routing_key}", goodContract, `{"at":"2026-01-05T10:00:00Z","reason":"fixes retries","routing_key":"HERE"}`, false},
		"the first member":   {"{kind: body, json: /a}", goodContract, `{"a":"HERE","at":"2026-01-05T10:00:00Z","reason":"fixes retries"}`, false},
		"a new object":       {"{kind: body, json: /auth/key}", goodContract, `{"at":"2026-01-05T10:00:00Z","auth":{"key":"HERE"},"reason":"fixes retries"}`, false},
		"an object there":    {"{kind: body, json: /auth/key}", nested, `{"at":"2026-01-05T10:00:00Z","auth":{"key":"HERE","kind":"key"},"reason":"fixes retries"}`, false},
		"an escaped name":    {"{kind: body, json: /a~1b}", goodContract, `{"a/b":"HERE","at":"2026-01-05T10:00:00Z","reason":"fixes retries"}`, false},
		"a field":            {"{kind: body, form: token}", form, "at=2026-01-05T10%3A00%3A00Z&reason=fixes+retries&token=HERE", true},
		"a field in front":   {"{kind: body, form: a}", form, "a=HERE&at=2026-01-05T10%3A00%3A00Z&reason=fixes+retries", true},
		"a field in between": {"{kind: body, form: key}", form, "at=2026-01-05T10%3A00%3A00Z&key=HERE&reason=fixes+retries", true},
	} {
		set, contract := mustLoad(t, bodySite(t, c.identity), c.contract)
		p := mustFreeze(t, set, contract, goodInput)
		r, err := p.Request(testNow)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h, ok := r.Hole()
		if !ok || h.Form != c.form || h.Offset > len(r.Body()) {
			t.Fatalf("%s: %+v %v", name, h, ok)
		}
		if got := string(r.Body()[:h.Offset]) + "HERE" + string(r.Body()[h.Offset:]); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		again, err := Thaw(set, p.Canonical())
		if err != nil || again.Digest() != p.Digest() {
			t.Errorf("%s: the plan is not made again: %v", name, err)
		}
	}
}

// Other identities leave the body as it is.
func TestNoHole(t *testing.T) {
	set, c := mustLoad(t, goodSite, goodContract)
	r, err := mustFreeze(t, set, c, goodInput).Request(testNow)
	if _, ok := r.Hole(); ok || err != nil {
		t.Error("a bearer has a place in the body")
	}
	if _, ok := (Request{}).Hole(); ok {
		t.Error("no request has one")
	}
}

func TestBodyIdentityRefusesContracts(t *testing.T) {
	const key = "{kind: body, json: /routing_key}"
	read := proofContract
	for name, c := range map[string]struct{ identity, old, new, want string }{
		"the member":                 {key, "json: {reason", "json: {routing_key: R1, reason", `32:10 identity-body the member /routing_key belongs to the identity "test-bot" of the target "deploy-test"`},
		"the member in capitals":     {key, "json: {reason", "json: {Routing_Key: R1, reason", `32:10 identity-body the member /routing_key belongs to the identity "test-bot" of the target "deploy-test"`},
		"a member that is no object": {"{kind: body, json: /auth/key}", "json: {reason", "json: {auth: x, reason", `32:10 identity-body the member auth must be an object, since the identity "test-bot" of the target "deploy-test" is sent inside it`},
		"the member inside":          {"{kind: body, json: /auth/key}", "json: {reason", "json: {auth: {key: x}, reason", `32:17 identity-body the member /auth/key belongs to the identity "test-bot" of the target "deploy-test"`},
		"a form":                     {key, "json: {reason", "form: {reason", `28:3 identity-body the request has another body than the identity "test-bot" of the target "deploy-test", which is sent in json`},
		"a JSON body":                {"{kind: body, form: token}", "headers: {Accept", "headers: {Accept", `28:3 identity-body the request has another body than the identity "test-bot" of the target "deploy-test", which is sent in form`},
		"the field":                  {"{kind: body, form: reason}", "json: {reason", "form: {reason", `32:10 identity-body the field reason belongs to the identity "test-bot" of the target "deploy-test"`},
		"a field inside":             {"{kind: body, form: reason}", "json: {reason: {from: input.reason}", "form: {reason: {kind: {from: input.reason}}", `32:10 identity-body the field reason belongs to the identity "test-bot" of the target "deploy-test"`},
		"no body":                    {key, "  json: {reason: {from: input.reason}, at: {from: call.now}}\n", "", `28:3 identity-body the request has no body, and the identity "test-bot" of the target "deploy-test" is sent in one`},
		"the idempotency key":        {key, "idempotency: {header: Idempotency-Key}", "idempotency: {json: /routing_key}", `41:14 identity-body the idempotency key and the identity "test-bot" of the target "deploy-test" have the same place in the body`},
		"the key around it":          {"{kind: body, json: /auth/key}", "idempotency: {header: Idempotency-Key}", "idempotency: {json: /auth}", `41:14 identity-body the idempotency key and the identity "test-bot" of the target "deploy-test" have the same place in the body`},
	} {
		text := goodContract
		if c.old != c.new {
			text = edit(t, goodContract, c.old, c.new)
		}
		_, ps := load(t, bodySite(t, c.identity), text)
		got := told(ps)
		if len(got) == 0 || len(ps) != 2 || ps[0].Hint == "" {
			t.Errorf("%s: %v", name, got)
			continue
		}
		got = []string{got[0]} // the other target says the same
		same(t, name, got, []string{c.want})
	}
	site := edit(t, bodySite(t, key), "identity: test-bot\n    actions: [start_release]", "identity: test-bot\n    actions: [get_me]")
	_, ps := load(t, site, read)
	same(t, "a read", told(ps), []string{`10:3 identity-body the request has no body, and the identity "test-bot" of the target "deploy-test" is sent in one`})
}

// FuzzHole: wherever the place is and whatever stands around it, a value that is
// written there is the member's value and changes nothing else.
func FuzzHole(f *testing.F) {
	f.Add("/routing_key", "reason", "text")
	f.Add("/a/b", `a"\`, "0")
	f.Add("/~0~1", "&=%", "\"\"")
	f.Add("/b", "", "é\u2028")
	f.Fuzz(func(t *testing.T, pointer, name, value string) {
		tokens, ok := memberTokens(pointer)
		if !ok || sameMember(name, tokens[0]) || !json.Valid([]byte(`"`+value+`"`)) && strings.ContainsRune(value, 0xfffd) {
			return
		}
		h := &holeSpec{json: tokens}
		body, at, err := h.open(bodyJSON, map[string]any{name: value, "z": map[string]any{"list": []any{value}}})
		if err != nil {
			return // "z" is on the way
		}
		filled := bytes.Join([][]byte{body[:at.Offset], body[at.Offset:]}, []byte("SECRET"))
		var doc any
		if err := json.Unmarshal(filled, &doc); err != nil {
			t.Fatalf("%q: %v in %s", pointer, err, filled)
		}
		for _, tok := range tokens {
			m, _ := doc.(map[string]any)
			doc = m[tok]
		}
		if doc != "SECRET" {
			t.Fatalf("%q holds %v in %s", pointer, doc, filled)
		}
		field := &holeSpec{form: "field"}
		if sameMember(formBase(name), "field") {
			return
		}
		body, at, err = field.open(bodyForm, map[string]any{name: value})
		if err != nil {
			return
		}
		filled = bytes.Join([][]byte{body[:at.Offset], body[at.Offset:]}, []byte("SECRET"))
		q, err := url.ParseQuery(string(filled))
		if err != nil || q.Get("field") != "SECRET" || q.Get(name) != value {
			t.Fatalf("%q %q: %v in %s", name, value, err, filled)
		}
	})
}
