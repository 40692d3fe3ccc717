package main_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// evidenceContract reads a review that another signer vouches for.
const evidenceContract = `contract: v1
action: get_evidence
version: 1.0.0
summary: Tell how a review of a change stands, with the signer's word for it.
owner: tests
effect: read
input: {type: object, additionalProperties: false, required: [change_id], properties: {change_id: {type: string, pattern: '^[a-z0-9]{1,16}$', maxLength: 16}}}
route: {target: evidence}
request:
  method: GET
  path: /evidence/{input.change_id}
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [state, evidence], properties: {state: {type: string, maxLength: 20}, evidence: {type: string, maxLength: 8000}}}
      success: {state: /state}
result: {type: object, additionalProperties: false, required: [state], properties: {state: {type: string, enum: [approved, refused]}}}
checks: [{signed: {jws: /evidence, keys: signer, issuer: "https://sign.example", audience: deploys, claims: {sub: input.change_id, state: result.state}}}]
`

// startContract starts a job and looks for it in the answer.
const startContract = `contract: v1
action: start_job
version: 1.0.0
summary: Start one job.
owner: tests
effect: change
input: {type: object, additionalProperties: false, required: [name], properties: {name: {type: string, pattern: '^[a-z]{1,8}$', maxLength: 8}}}
route: {target: evidence}
approval: {sentence: "Start {input.name}"}
request:
  method: POST
  path: /jobs/{input.name}
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [jobs], properties: {jobs: {type: array, maxItems: 9, items: {type: object, additionalProperties: false, required: [name, id], properties: {name: {type: string, maxLength: 8}, id: {type: string, maxLength: 8}}}}}}
      success: {id: {find: {in: /jobs, where: {equals: [/name, {from: input.name}]}}, at: /id}}
result: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
at_most_once: each call starts one
`

func jws(key ed25519.PrivateKey, header, claims string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	input := b64([]byte(header)) + "." + b64([]byte(claims))
	return input + "." + b64(ed25519.Sign(key, []byte(input)))
}

// evidenceHome is a daemon with both contracts and the signer's public key.
func evidenceHome(t *testing.T, script upstream.Script) (*home, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := testkit.CA(t)
	up := testkit.HTTPS(t, ca, script)
	h := newHome(t, up, testkit.CAFile(t, ca))
	site := strings.Replace(h.site(testkit.CAFile(t, ca)), "targets:\n", fmt.Sprintf("targets:\n  evidence:\n    url: https://%s\n    ca: %s\n    allow: [loopback]\n    identity: nobody\n    actions: [get_evidence, start_job]\n    effects: [read, change]\n    ask: session\n", up.Addr(), testkit.CAFile(t, ca)), 1)
	site = strings.Replace(site, "\nidentities:\n", "\nidentities:\n  nobody: {kind: none}\n", 1)
	h.write("c/targets.yaml", site+"\nkeys:\n  signer: {jwks: signer.json}\n")
	h.write("c/signer.json", `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","use":"sig","x":"`+base64.RawURLEncoding.EncodeToString(public)+`"}]}`)
	h.write("c/contracts/get_evidence/contract.yaml", evidenceContract)
	h.write("c/contracts/start_job/contract.yaml", startContract)
	h.open()
	return h, private
}

// Signed evidence through the whole daemon: the agent reads what was vouched
// for, a forgery is INVALID_RESPONSE, and the operator reads which rule it broke.
func TestSignedEvidenceThroughTheDaemon(t *testing.T) {
	t.Parallel()
	var answer atomic.Value
	answer.Store(upstream.JSON(200, "{}"))
	h, key := evidenceHome(t, func(upstream.Request) upstream.Answer { return answer.Load().(upstream.Answer) })
	a := h.agent("reviewer")
	claims := func(sub string, life time.Duration) string {
		return fmt.Sprintf(`{"iss":"https://sign.example","aud":"deploys","sub":%q,"state":"approved","exp":%d}`, sub, time.Now().Add(life).Unix())
	}
	body := func(token string) upstream.Answer {
		return upstream.JSON(200, fmt.Sprintf(`{"state":"approved","evidence":%q}`, token))
	}
	answer.Store(body(jws(key, `{"alg":"EdDSA","kid":"k1"}`, claims("c1", time.Hour))))
	if e := h.call(a, "get_evidence", "", `{"change_id":"c1"}`); !e.OK || !strings.Contains(string(e.Raw), `"data":{"state":"approved"}`) {
		t.Fatalf("answered %s", e.Raw)
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	reads := h.operator()
	defer reads.Close()
	if err := patiently(func() error { return reads.OpenRead(h.ctx(), h.proof(reads, client.OpRead, "")) }); err != nil {
		t.Fatal(err)
	}
	good := jws(key, `{"alg":"EdDSA","kid":"k1"}`, claims("c1", time.Hour))
	for rule, token := range map[string]string{
		"signed-signature": jws(stranger, `{"alg":"EdDSA","kid":"k1"}`, claims("c1", time.Hour)),
		"signed-key":       jws(key, `{"alg":"EdDSA","kid":"k2"}`, claims("c1", time.Hour)),
		"signed-header":    jws(stranger, `{"alg":"EdDSA","kid":"k1","jwk":{}}`, claims("c1", time.Hour)),
		"signed-claim":     jws(key, `{"alg":"EdDSA","kid":"k1"}`, claims("c2", time.Hour)),
		"signed-expired":   jws(key, `{"alg":"EdDSA","kid":"k1"}`, claims("c1", -time.Hour)),
		"signed-form":      good[:strings.LastIndexByte(good, '.')+1],
	} {
		answer.Store(body(token))
		id := "call-of-" + strings.TrimPrefix(rule, "signed-")
		e := h.call(a, "get_evidence", id, `{"change_id":"c1"}`)
		if code(e) != "INVALID_RESPONSE" || strings.Contains(string(e.Raw), rule) {
			t.Errorf("%s: answered %s", rule, e.Raw)
		}
		d, err := reads.Call(h.ctx(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(d.More), fmt.Sprintf("%q", rule)) || !strings.Contains(string(d.More), `"layer":"check"`) {
			t.Errorf("%s: the operator reads %s", rule, d.More)
		}
	}
}

// An accepted change whose answer lacks the object: NOT_FOUND warns, is final,
// and the same id sends nothing more.
func TestAMissingObjectAfterAChangeThroughTheDaemon(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	h, _ := evidenceHome(t, func(upstream.Request) upstream.Answer {
		sent.Add(1)
		return upstream.JSON(200, `{"jobs":[{"name":"other","id":"j1"}]}`)
	})
	a := h.agent("starter")
	for range 3 {
		e := h.call(a, "start_job", "start-0001", `{"name":"build"}`)
		if code(e) != "NOT_FOUND" || e.Err.Retryable || !strings.Contains(e.Err.Message, "do not repeat it") || e.RequestID != "start-0001" {
			t.Fatalf("answered %s", e.Raw)
		}
	}
	if n := sent.Load(); n != 1 {
		t.Errorf("%d requests left, want 1", n)
	}
}
