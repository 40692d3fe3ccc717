package main_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

const wrongRefresh = "refresh-wrong-planted-6e20d4"

// rotate gives an identity a new secret, with a proof.
func (k *kinds) rotate(name string, put client.PutIdentity) client.RotatedIdentity {
	k.t.Helper()
	op := k.operator()
	defer op.Close()
	var out client.RotatedIdentity
	err := patiently(func() (err error) {
		put.Proof = k.proof(op, client.OpIdentityRotate, name, put.Params())
		out, err = op.RotateIdentity(k.ctx(), name, put)
		return err
	})
	if err != nil {
		k.t.Fatalf("rotate %s: %v", name, err)
	}
	return out
}

func (k *kinds) identity(name string) client.IdentityDetail {
	k.t.Helper()
	op := k.operator()
	defer op.Close()
	d, err := op.Identity(k.ctx(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	return d
}

// A new secret is proved at the remote system before it replaces the old one: by a
// read, or by its exchange. The old one serves until then, and a failure changes
// nothing. A certificate's own end is warned of.
func TestIdentityRotatedOnceProved(t *testing.T) {
	t.Parallel()
	k := newKinds(t, "person", "mesh")
	a := k.agent("build-worker")

	t.Run("a certificate that the server does not trust", func(t *testing.T) { k.rotatesToAStranger(t, a) })
	t.Run("a refresh token that is refused, and one that is taken", func(t *testing.T) { k.rotatesByExchange(t, a) })
	t.Run("the read of an operator", func(t *testing.T) { k.provesMesh(t) })
	_, metrics := rawGet(t, filepath.Join(k.places.Runtime, "metrics.sock"), "/metrics")
	for _, want := range []string{`chatelaine_identity_expiry_timestamp_seconds{identity="mesh-bot"} `, `chatelaine_identity_last_use_timestamp_seconds{identity="person-bot"} `, `chatelaine_identity_suspended{identity="person-bot"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}

	used := k.identity("mesh-bot").LastUsed
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	k.start()
	if d := k.identity("mesh-bot"); d.State != "vault locked" || !d.LastUsed.IsZero() || len(d.Actions) == 0 {
		t.Errorf("of a locked vault: %+v", d)
	}
	k.unlock()
	if again := k.identity("mesh-bot").LastUsed; used.IsZero() || !again.Equal(used.Truncate(time.Millisecond)) {
		t.Errorf("last used %s, after the restart %s", used, again)
	}
	for _, p := range append(k.planted(), wrongRefresh) { // the tried ones too
		s := testkit.Plant(p)
		s.Refuse(t, "the log", k.log.bytes())
		s.RefuseFiles(t, k.places.State, k.places.Config, k.places.Runtime)
	}
}

func (k *kinds) rotatesToAStranger(t *testing.T, a *client.Agent) {
	t.Helper()
	certificate, key, _ := clientOf(t, "stranger")
	before := k.identity("mesh-bot")
	out := k.rotate("mesh-bot", client.PutIdentity{Secret: append(certificate, key...), Action: "use_mesh"})
	if out.Rotated || out.Stored != nil || out.Proof == nil || out.Proof.OK {
		t.Fatalf("%+v", out)
	}
	after := k.identity("mesh-bot")
	if after.Generation != before.Generation || after.LastFailure != nil {
		t.Errorf("%+v", after)
	}
	k.fine(a, "mesh", "mesh-0001")
	if after := k.identity("mesh-bot"); after.LastUsed.IsZero() || after.Expires.IsZero() || after.State != "stored" {
		t.Errorf("%+v", after.Identity)
	}
}

func (k *kinds) rotatesByExchange(t *testing.T, a *client.Agent) {
	t.Helper()
	k.fine(a, "person", "person-0001")
	if out := k.rotate("person-bot", client.PutIdentity{Secret: []byte(wrongRefresh)}); out.Rotated || out.Proof.Code != fault.RemoteUnauthenticated {
		t.Fatalf("%+v", out)
	}
	k.fine(a, "person", "person-0002")
	k.login.mu.Lock()
	good := k.login.refresh
	k.login.mu.Unlock()
	out := k.rotate("person-bot", client.PutIdentity{Secret: []byte(good), Label: "second consent"})
	if !out.Rotated || !out.Proof.OK {
		t.Fatalf("%+v", out)
	}
	if d := k.identity("person-bot"); d.Generation != out.Stored.Generation || d.Label != "second consent" || !d.Exchanges {
		t.Errorf("%+v", d.Identity)
	}
	// The proof has used that refresh token up; what took its place is kept.
	k.fine(a, "person", "person-0003")
}

func (k *kinds) provesMesh(t *testing.T) {
	t.Helper()
	op := k.operator()
	defer op.Close()
	if _, err := op.ProveIdentity(k.ctx(), "mesh-bot", "use_mesh"); client.CodeOf(err) != client.ProofRequired {
		t.Fatalf("without a read session: %v", err)
	}
	err := patiently(func() error { return op.OpenRead(k.ctx(), k.proof(op, client.OpRead, "")) })
	if err != nil {
		t.Fatal(err)
	}
	k.guarded.take()
	p, err := op.ProveIdentity(k.ctx(), "mesh-bot", "use_mesh")
	if err != nil || !p.OK || string(p.Data) != `{"state":"fine"}` {
		t.Fatalf("%+v, %v", p, err)
	}
	if sent := k.guarded.take(); len(sent) != 1 || sent[0].client != "mesh-bot" {
		t.Errorf("sent %+v", sent)
	}
	if c, err := op.Call(k.ctx(), p.RequestID); err != nil || c.Agent != "(operator)" || c.State != "finished" {
		t.Errorf("%+v, %v", c, err)
	}
}
