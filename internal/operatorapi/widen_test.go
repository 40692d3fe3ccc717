package operatorapi

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/fault"
)

const deployFile = "deploy_release/contract.yaml"

// tried is one widening operation of the tests, ready to be performed.
type tried struct {
	operation, subject, elsewhere string // elsewhere: another subject; "" where it has none
	of, other                     params // other: parameters that ask for something else; nil where it has none
	change                        func() // changes what the daemon would do
	says                          string // what the refusal after change names
	covers                        string // what the challenge says
}

func everyOperation(r *rig) []tried {
	r.vault.write("deploy-test-bot", "https://old.example")
	r.vault.write("jobs-reader", "https://jobs.example")
	ses, other := r.pending("build-worker"), r.pending("night-worker")
	moved := func() { // the destination of the test environment, in force
		r.edit("targets.yaml", "https://deploy.test.example", "https://elsewhere.test.example")
		r.force()
	}
	return append([]tried{
		{operation: opRead, covers: "read inputs, journals and refused answers on one connection for 10 minutes"},
		{operation: opAuthorize, subject: ses, elsewhere: other, says: "what is permitted of deploy_release",
			change: func() { r.edit(deployFile, "version: 1.0.0", "version: 1.0.1"); r.force() },
			covers: "let agent build-worker act in session " + ses + "; without asking again: "},
		{operation: opPut, subject: "deploy-test-bot", elsewhere: "deploy-prod-bot", of: params{}, other: params{"short": true},
			change: moved, says: "the destination of deploy-test-bot", covers: "store a secret for deploy-test-bot, bound to https://"},
		{operation: opRebind, subject: "deploy-test-bot", elsewhere: "jobs-reader", of: params{}, other: params{"target": "deploy-test"},
			change: moved, says: "the destination of deploy-test-bot", covers: "; now it is bound to https://old.example; it changes host from https://old.example to https://deploy.test.example"},
		{operation: opDelete, subject: "deploy-test-bot", elsewhere: "jobs-reader", says: "the stored secret of deploy-test-bot",
			change: func() { r.vault.write("deploy-test-bot", "https://old.example") }, covers: "delete the secret of deploy-test-bot, which is bound to https://old.example; these work no more: deploy_release on deploy-test"},
		{operation: opRotate, subject: "deploy-test-bot", elsewhere: "jobs-reader", of: params{"unproved": true}, other: params{"unproved": true, "short": true}, says: "the stored secret of deploy-test-bot",
			change: func() { r.vault.write("deploy-test-bot", "https://old.example") },
			covers: "put a new secret for deploy-test-bot in the place of generation 1, bound as that is to https://old.example; without proof that it works"},
		{operation: opResolve, subject: "lost-0001", elsewhere: "lost-0002", of: params{"happened": true}, other: params{"happened": false},
			covers: "resolve call lost-0001 (deploy_release, asked by build-worker) as: it happened"},
		{operation: opPassphrase, says: "the present operator passphrase", change: func() { r.vault.passphrases++ },
			covers: "replace the operator passphrase: decisions are proved with the new one from now on"},
		{operation: opReload, says: "the contracts and targets on disk", change: func() { r.edit(deployFile, "version: 1.0.0", "version: 1.0.1") },
			covers: "put the files in force as they are now: set "},
	}, append(slotOperations(r), sourceOperations(r)...)...)
}

// TestProofCoversTheRequest: whatever differs from what the challenge was issued
// for, nothing happens; then the same request with the right proof does happen.
func TestProofCoversTheRequest(t *testing.T) {
	for _, name := range []string{opRead, opAuthorize, opPut, opRebind, opRotate, opDelete, opResolve, opPassphrase, opReload, opAddSlot, opRemoveSlot, opRotateKey, opBackup, opImport, opPutSource, opDeleteSource} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for the disk
			r := newRig(t)
			all := everyOperation(r)
			x := all[slices.IndexFunc(all, func(x tried) bool { return x.operation == name })]
			before := r.snapshot()
			refused := func(what, code string, proof any) {
				t.Helper()
				_, err := r.perform(x.operation, x.subject, x.of, proof)
				if err == nil || translate(err).Code != code {
					t.Errorf("%s: %v, want %s", what, err, code)
				}
				if r.snapshot() != before {
					t.Fatalf("%s: something changed", what)
				}
			}
			refused("no proof", "PROOF_REQUIRED", nil)
			refused("an empty proof", "PROOF_REQUIRED", params{})
			refused("empty members", "PROOF_REQUIRED", params{"challenge_id": "", "kind": "", "mac": ""})
			refused("a challenge that nobody issued", "CHALLENGE_EXPIRED", params{"challenge_id": "chl_0", "kind": "passphrase", "mac": "AAAA"})
			if x.other != nil {
				refused("other parameters", "CHALLENGE_EXPIRED", r.proved(x.operation, x.subject, x.other))
			}
			if x.elsewhere != "" {
				refused("another subject", "CHALLENGE_EXPIRED", r.proved(x.operation, x.elsewhere, x.of))
			}
			for _, o := range everyOperationBut(r, x) {
				refused("a proof for "+o.operation, "CHALLENGE_EXPIRED", r.proved(o.operation, o.subject, o.of))
			}
			used := r.proved(x.operation, x.subject, x.of)
			refused("a wrong proof", "PROOF_REFUSED", params{"challenge_id": used["challenge_id"], "kind": "passphrase", "mac": "AAAA"})
			refused("a used challenge", "CHALLENGE_EXPIRED", used)
			r.lapses(x, refused)
			r.succeeds(x, before)
		})
	}
}

// everyOperationBut are the others, with subjects that exist.
func everyOperationBut(r *rig, x tried) []tried {
	out := []tried{
		{operation: opRead}, {operation: opReload}, {operation: opPut, subject: "deploy-test-bot"}, {operation: opRebind, subject: "deploy-test-bot"},
		{operation: opDelete, subject: "deploy-test-bot"}, {operation: opRotateKey}, {operation: opResolve, subject: "lost-0001", of: params{"happened": true}},
	}
	for _, s := range r.sessions.List() {
		out = append(out, tried{operation: opAuthorize, subject: s.ID})
	}
	return slices.DeleteFunc(out, func(o tried) bool { return o.operation == x.operation })
}

// lapses proves too late.
func (r *rig) lapses(x tried, refused func(what, code string, proof any)) {
	r.t.Helper()
	whole := r.api
	const life = 10 * time.Millisecond
	r.useDesk(approvals.NewDesk(approvals.Options{Verify: verifyItself, ChallengeLife: life}))
	late := r.proved(x.operation, x.subject, x.of)
	time.Sleep(2 * life)
	refused("a challenge that lapsed", "CHALLENGE_EXPIRED", late)
	r.api = whole
}

// succeeds performs the operation as it was proved, once.
func (r *rig) succeeds(x tried, before string) {
	r.t.Helper()
	ch, err := r.challenge(x.operation, x.subject, x.of)
	r.must(err)
	if !strings.Contains(ch.Covers, x.covers) || len(ch.Digest) != 64 {
		r.t.Errorf("the challenge covers %q (%s), want %q", ch.Covers, ch.Digest, x.covers)
	}
	if _, err := r.perform(x.operation, x.subject, x.of, proofOf(ch)); err != nil {
		r.t.Fatalf("with the right proof: %v", err)
	}
	after := r.snapshot()
	if after == before {
		r.t.Error("with the right proof nothing happened")
	}
	if _, err := r.perform(x.operation, x.subject, x.of, proofOf(ch)); err == nil || translate(err).status == 200 || r.snapshot() != after {
		r.t.Errorf("the proof was good for two: %v", err)
	}
}

// TestProofCoversWhatTheDaemonWouldDo: between the challenge and the operation
// the files, the permits, the destination or what is stored change. The answer
// names what; nothing happens.
func TestProofCoversWhatTheDaemonWouldDo(t *testing.T) {
	for _, name := range []string{opAuthorize, opPut, opRebind, opRotate, opDelete, opPassphrase, opReload, opAddSlot, opRemoveSlot, opRotateKey, opPutSource, opDeleteSource} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for the disk
			r := newRig(t)
			all := everyOperation(r)
			x := all[slices.IndexFunc(all, func(x tried) bool { return x.operation == name })]
			proof := r.proved(x.operation, x.subject, x.of)
			x.change()
			before := r.snapshot()
			_, err := r.perform(x.operation, x.subject, x.of, proof)
			e := translate(err)
			if err == nil || e.Code != "CHALLENGE_EXPIRED" || e.status != 409 || !strings.Contains(e.Detail, x.says) || strings.Contains(e.Detail, "parameters") {
				t.Errorf("%v, want CHALLENGE_EXPIRED that names %q", err, x.says)
			}
			if r.snapshot() != before {
				t.Error("something changed")
			}
			if _, err := r.perform(x.operation, x.subject, x.of, r.proved(x.operation, x.subject, x.of)); err != nil {
				t.Errorf("after another look: %v", err)
			}
		})
	}
}

// TestConflictIsCovered: another session of the name was authorised meanwhile, so
// that this one would end it.
func TestConflictIsCovered(t *testing.T) {
	r := newRig(t)
	first, second := r.pending("build-worker"), r.pending("build-worker")
	proof := r.proved(opAuthorize, second, nil)
	if _, err := r.perform(opAuthorize, first, nil, r.proved(opAuthorize, first, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.perform(opAuthorize, second, nil, proof); err == nil || !strings.Contains(translate(err).Detail, "which session of that name ends") {
		t.Errorf("%v", err)
	}
	ch, err := r.challenge(opAuthorize, second, nil)
	if err != nil || !strings.Contains(ch.Covers, "ending the other session of that name") {
		t.Errorf("%+v, %v", ch, err)
	}
	if _, err := r.challenge(opAuthorize, first, nil); translate(err).Code != "ALREADY_DECIDED" {
		t.Errorf("a challenge for a decided session: %v", err)
	}
}

// TestSameRequestTwoSpellings: a default that is written out is the same request.
func TestSameRequestTwoSpellings(t *testing.T) {
	r := newRig(t)
	proof := r.proved(opPut, "deploy-test-bot", params{"short": false, "target": ""})
	if _, err := r.perform(opPut, "deploy-test-bot", nil, proof); err != nil {
		t.Error(err)
	}
}

func TestChallengeRefusals(t *testing.T) {
	r := newRig(t)
	ses := r.pending("build-worker")
	for name, c := range map[string]struct {
		operation, subject string
		of                 any
		code               string
	}{
		"an unknown operation":   {"identity.read", "x", nil, "INVALID_ARGUMENT"},
		"a card":                 {opApprove, "apr_x", nil, "INVALID_ARGUMENT"},
		"a subject too many":     {opReload, "x", nil, "INVALID_ARGUMENT"},
		"of is a text":           {opReload, "", "yes", "INVALID_ARGUMENT"},
		"of is null":             {opReload, "", nil, "INVALID_ARGUMENT"},
		"a member too many":      {opReload, "", params{"x": 1.0}, "INVALID_ARGUMENT"},
		"the secret":             {opPut, "deploy-test-bot", params{"secret": "AAAA"}, "INVALID_ARGUMENT"},
		"a proof":                {opPut, "deploy-test-bot", params{"proof": params{}}, "INVALID_ARGUMENT"},
		"short is a text":        {opPut, "deploy-test-bot", params{"short": "yes"}, "INVALID_ARGUMENT"},
		"short for a rebind":     {opRebind, "deploy-test-bot", params{"short": true}, "INVALID_ARGUMENT"},
		"nothing found":          {opResolve, "lost-0001", params{}, "INVALID_ARGUMENT"},
		"a session's parameters": {opAuthorize, ses, params{"permits": 1.0}, "INVALID_ARGUMENT"},
		"no such session":        {opAuthorize, "ses_x", params{}, "NOT_FOUND"},
		"no such call":           {opResolve, "lost-0009", params{"happened": true}, "NOT_FOUND"},
		"nothing stored":         {opRebind, "deploy-test-bot", params{}, "NOT_FOUND"},
		"nothing to delete":      {opDelete, "deploy-test-bot", params{}, "NOT_FOUND"},
	} {
		_, err := r.api.challenge(r.request("", params{"operation": c.operation, "subject": c.subject, "of": c.of}))
		if err == nil || translate(err).Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if _, err := r.challenge(opResolve, "lost-0001", params{}); err == nil || translate(err).Fields[0].Pointer != "/of/happened" {
		t.Errorf("the pointer of a missing parameter: %v", err)
	}
	if _, err := r.api.challenge(r.request("", params{"operation": opPut})); translate(err).Code != "INVALID_ARGUMENT" {
		t.Errorf("no subject: %v", err)
	}
	r.vault.Lock("")
	if _, err := r.challenge(opReload, "", nil); fault.CodeOf(err) != fault.VaultLocked {
		t.Errorf("locked: %v", err)
	}
}

// TestRecordsNameWhatWasDone: the record tells what a proof allowed.
func TestRecordsNameWhatWasDone(t *testing.T) {
	r := newRig(t)
	do := func(operation, subject string, of params) map[string]any {
		t.Helper()
		if _, err := r.perform(operation, subject, of, r.proved(operation, subject, of)); err != nil {
			t.Fatal(err)
		}
		return r.decided(operation).Detail
	}
	if d := do(opPut, "deploy-test-bot", params{"short": true}); !strings.HasPrefix(d["destination"].(string), "https://") || d["short"] != true {
		t.Errorf("put: %v", d)
	}
	was := r.vault.held["deploy-test-bot"].Destination
	r.edit("targets.yaml", "https://deploy.test.example", "https://elsewhere.test.example")
	from := r.g.Set().Digest()
	d := do(opReload, "", nil)
	if to := r.g.Set().Digest(); from == to || d["from"] != hex.EncodeToString(from[:]) || d["to"] != hex.EncodeToString(to[:]) {
		t.Errorf("reload: %v", d)
	}
	if d := do(opRebind, "deploy-test-bot", nil); d["was"] != was || d["destination"] == was || !strings.Contains(d["destination"].(string), "elsewhere") {
		t.Errorf("rebind: %v", d)
	}
	if d := do(opResolve, "lost-0001", params{"happened": false}); d["happened"] != false {
		t.Errorf("resolve: %v", d)
	}
}

// TestReloadIsRecordedFirst: the record, then the vault, then the set. Where one
// refuses, the old set stays in force.
func TestReloadIsRecordedFirst(t *testing.T) {
	t.Run("the vault refuses", func(t *testing.T) {
		r := newRig(t)
		r.edit(deployFile, "version: 1.0.0", "version: 1.0.1")
		r.daemon.keep = errors.New("the disk is full")
		before := r.snapshot()
		if _, err := r.perform(opReload, "", nil, r.proved(opReload, "", nil)); !errors.Is(err, r.daemon.keep) || r.snapshot() != before {
			t.Errorf("%v", err)
		}
		r.decided("reload")
		r.decided("reload failed: the old set stays")
	})
	t.Run("the record refuses", func(t *testing.T) {
		r := newRig(t)
		r.edit(deployFile, "version: 1.0.0", "version: 1.0.1")
		before := r.snapshot()
		proof := r.proved(opReload, "", nil)
		r.must(r.log.Close())
		if _, err := r.perform(opReload, "", nil, proof); fault.CodeOf(err) != fault.AuditUnavailable || r.snapshot() != before {
			t.Errorf("%v", err)
		}
	})
	t.Run("the files broke meanwhile", func(t *testing.T) {
		r := newRig(t)
		before := r.snapshot()
		proof := r.proved(opReload, "", nil)
		r.edit(deployFile, "effect: change", "effect: chaange")
		if _, err := r.perform(opReload, "", nil, proof); fault.CodeOf(err) != fault.InvalidArgument || r.snapshot() != before {
			t.Errorf("%v", err)
		}
		if _, err := r.challenge(opReload, "", nil); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("a challenge over files that do not load: %v", err)
		}
	})
	t.Run("what would change is told", func(t *testing.T) {
		r := newRig(t)
		r.edit(deployFile, "version: 1.0.0", "version: 1.0.1")
		r.g.Hold(map[string]bool{"get_job_run": true})
		ch, err := r.challenge(opReload, "", nil)
		if err != nil || !strings.Contains(ch.Covers, "new or changed: deploy_release, get_job_run") {
			t.Errorf("%q, %v", ch.Covers, err)
		}
	})
}

// TestStatementBinds: the digest differs when any part does.
func TestStatementBinds(t *testing.T) {
	fact := func(name string, v any) []approvals.Part { return []approvals.Part{factOf(name, v)} }
	base := statement{covers: "a", of: params{"x": true}, facts: fact("n", "v")}
	seen := map[[32]byte]string{base.operation("k", "s").Digest: "base"}
	for name, d := range map[string][32]byte{
		"kind":      base.operation("k2", "s").Digest,
		"subject":   base.operation("k", "s2").Digest,
		"moved":     base.operation("ks", "").Digest,
		"sentence":  statement{covers: "b", of: base.of, facts: base.facts}.operation("k", "s").Digest,
		"of":        statement{covers: "a", of: params{"x": false}, facts: base.facts}.operation("k", "s").Digest,
		"no of":     statement{covers: "a", facts: base.facts}.operation("k", "s").Digest,
		"fact":      statement{covers: "a", of: base.of, facts: fact("n", "w")}.operation("k", "s").Digest,
		"fact name": statement{covers: "a", of: base.of, facts: fact("m", "v")}.operation("k", "s").Digest,
		"no fact":   statement{covers: "a", of: base.of}.operation("k", "s").Digest,
	} {
		if other, known := seen[d]; known {
			t.Errorf("%s is bound like %s", name, other)
		}
		seen[d] = name
	}
}
