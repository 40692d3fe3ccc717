package main_test

import (
	"errors"
	"strings"
	"testing"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
)

// prove answers one challenge with the operator passphrase.
func (h *home) prove(op *client.Operator, operation, subject string, of client.Params) (client.Challenge, client.Proof) {
	h.t.Helper()
	ch, err := op.Challenge(h.ctx(), operation, subject, of)
	if err != nil {
		h.t.Fatalf("challenge %s: %v", operation, err)
	}
	p, err := prove(ch)
	if err != nil {
		h.t.Fatal(err)
	}
	return ch, p
}

// expired wants CHALLENGE_EXPIRED with a detail that names what is different.
func expired(t *testing.T, err error, names string) {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) || e.Code != client.ChallengeExpired || e.Status != 409 || !strings.Contains(e.Detail, names) {
		t.Errorf("%v, want CHALLENGE_EXPIRED that names %q", err, names)
	}
}

func covers(t *testing.T, ch client.Challenge, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(ch.Covers, want) {
			t.Errorf("the challenge covers %q, want %q in it", ch.Covers, want)
		}
	}
}

// TestProofIsOverTheRequest: a true proof, over something else than what would be
// done, widens nothing.
func TestProofIsOverTheRequest(t *testing.T) {
	t.Parallel()
	up := &switchable{}
	up.set(goodDeploy)
	h := rig(t, up.script)
	h.open()
	op := h.operator()
	defer op.Close()
	digest := func() string {
		t.Helper()
		list, err := op.Contracts(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		return list.Digest
	}

	t.Run("files changed after the challenge", func(t *testing.T) {
		before := digest()
		h.change(deployContract, "version: 1.0.0", "version: 1.0.1")
		ch, p := h.prove(op, client.OpReload, "", nil)
		covers(t, ch, "put the files in force as they are now: set ", "new or changed: deploy_release")
		h.change(deployContract, "version: 1.0.1", "version: 1.0.2")
		expired(t, op.Reload(h.ctx(), &p), "the contracts and targets on disk")
		if digest() != before {
			t.Fatal("a set is in force that nobody has seen")
		}
		expired(t, op.Reload(h.ctx(), &p), "") // used up
		if err := h.reload(op); err != nil || digest() == before {
			t.Errorf("after another look: %v", err)
		}
	})

	t.Run("files that do not load get no challenge", func(t *testing.T) {
		h.change(deployContract, "effect: change", "effect: chaange")
		for range 3 {
			if _, err := op.Challenge(h.ctx(), client.OpReload, "", nil); client.CodeOf(err) != "INVALID_ARGUMENT" {
				t.Errorf("answered %v", err)
			}
		}
		if s, err := op.Status(h.ctx()); err != nil || len(s.Contracts.Problems) == 0 || !strings.Contains(s.Contracts.Problems[0], "contract.yaml:") {
			t.Errorf("status says %+v, %v", s.Contracts, err)
		}
		if n := strings.Count(string(h.log.bytes()), "the old set stays"); n != 1 {
			t.Errorf("the log says it %d times", n)
		}
		h.change(deployContract, "effect: chaange", "effect: change")
		h.prove(op, client.OpReload, "", nil)
		if s, err := op.Status(h.ctx()); err != nil || len(s.Contracts.Problems) != 0 {
			t.Errorf("the files are right and status says %+v, %v", s.Contracts, err)
		}
	})

	t.Run("a secret for another destination", func(t *testing.T) {
		put := func(p client.Proof, short bool) error {
			_, err := op.PutIdentity(h.ctx(), "deploy-test-bot", client.PutIdentity{Secret: []byte(planted), Short: short, Proof: p})
			return err
		}
		ch, p := h.prove(op, client.OpIdentityPut, "deploy-test-bot", nil)
		covers(t, ch, "store a secret for deploy-test-bot, bound to https://"+h.up.Addr())
		expired(t, put(p, true), "the parameters of the request")
		_, p = h.prove(op, client.OpIdentityPut, "deploy-test-bot", nil)
		h.change("c/targets.yaml", h.up.Addr()+"\n    ca", h.up.Addr()+"/moved\n    ca")
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		expired(t, put(p, false), "the destination of deploy-test-bot")
		list, err := op.Identities(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if x.Stored {
				t.Errorf("%s is stored", x.Name)
			}
		}
		h.put("deploy-test-bot")
		h.change("c/targets.yaml", h.up.Addr()+"/moved\n    ca", h.up.Addr()+"/back\n    ca")
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		ch, p = h.prove(op, client.OpIdentityRebind, "deploy-test-bot", nil)
		covers(t, ch, "bind the stored secret of deploy-test-bot to https://"+h.up.Addr()+"/back; now it is bound to", "/moved")
		if s, err := op.RebindIdentity(h.ctx(), "deploy-test-bot", "", p); err != nil || !strings.HasSuffix(s.Destination, "/back") {
			t.Errorf("rebind: %+v, %v", s, err)
		}
	})

	t.Run("permits changed after the card was shown", func(t *testing.T) {
		a, err := client.NewAgent(client.AgentOptions{Socket: h.places.AgentSocket(), Owners: client.OwnAndRoot(), UserAgent: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		s, err := a.OpenSession(h.ctx(), "night-worker", "self")
		if err != nil {
			t.Fatal(err)
		}
		a.SetToken(s.Token)
		ch, p := h.prove(op, client.OpAuthorize, s.ID, nil)
		covers(t, ch, "let agent night-worker act in session "+s.ID, "deploy_release on deploy-test")
		h.change(deployContract, "version: 1.0.2", "version: 1.0.3")
		if err := h.reload(op); err != nil {
			t.Fatal(err)
		}
		expired(t, op.Authorize(h.ctx(), s.ID, p), "what is permitted of deploy_release")
		if st, err := a.Session(h.ctx()); err != nil || st.State != "pending" {
			t.Errorf("the session is %+v, %v", st, err)
		}
		if err := op.Authorize(h.ctx(), s.ID, client.Proof{}); client.CodeOf(err) != client.ProofRequired {
			t.Errorf("an empty proof: %v", err)
		}
	})

	t.Run("the other finding", func(t *testing.T) {
		a := h.agent("build-worker")
		up.set(func(upstream.Request) upstream.Answer {
			return upstream.Answer{Headers: []upstream.Header{{Name: "Content-Type", Value: "text/html"}}, Body: []byte("<b>ok</b>")}
		})
		if e := h.call(a, "deploy_release", "found-0001", deployVersion("5.0.0")); code(e) != "INVALID_RESPONSE" {
			t.Fatalf("answered %s", e.Raw)
		}
		ch, p := h.prove(op, client.OpCallResolve, "found-0001", client.ResolveParams(true))
		covers(t, ch, "resolve call found-0001 (deploy_release, asked by build-worker) as: it happened")
		expired(t, op.Resolve(h.ctx(), "found-0001", false, p), "the parameters of the request")
		if list, err := op.Calls(h.ctx(), "unresolved"); err != nil || len(list) != 1 {
			t.Errorf("unresolved: %+v, %v", list, err)
		}
		err := patiently(func() error {
			return op.Resolve(h.ctx(), "found-0001", true, h.proof(op, client.OpCallResolve, "found-0001", client.ResolveParams(true)))
		})
		if err != nil {
			t.Error(err)
		}
	})
}
