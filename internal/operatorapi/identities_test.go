package operatorapi

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/secret"
)

// trialLease sends a secret as a bearer token.
type trialLease struct {
	token string
	ready error
}

func (trialLease) Generation() uint64         { return 99 }
func (trialLease) Scan(b []byte) []secret.Hit { return nil }
func (trialLease) Close()                     {}
func (trialLease) Rejected()                  {}
func (l trialLease) Ready(context.Context, actions.Narrow, gateway.Exchange) error {
	return l.ready
}
func (trialLease) ClientCertificate(executor.Connection) (*tls.Certificate, error) {
	return nil, nil
}
func (l trialLease) Attach(out executor.Outgoing, _ executor.Connection) error {
	return out.SetHeader("Authorization", "Bearer "+l.token)
}

func (v *tableVault) Identity(name string) (IdentityDetail, error) {
	d := IdentityDetail{IdentityView: IdentityView{Name: name, State: IdentityMissing, Source: v.from}, Check: v.check, Exchanges: v.exchanges}
	if v.locked {
		d.State = IdentityLocked
		return d, nil
	}
	if s, ok := v.held[name]; ok {
		d.State, d.Stored, d.Generation, d.Destination = IdentityStored, true, s.Generation, s.Destination
	}
	for _, t := range v.r.g.Set().Targets() {
		if t.Identity() != name {
			continue
		}
		d.Actions = append(d.Actions, IdentityAction{Action: "deploy_release", Target: t.Name()})
		if now := "https://" + t.Host() + t.BasePath(); d.Stored && now != d.Destination {
			d.Differs = append(d.Differs, Difference{Target: t.Name(), Part: "host", Bound: d.Destination, Now: now})
		}
	}
	return d, nil
}

func (v *tableVault) Rotate(name string) (Rotating, error) { return tableRotating{v, name}, nil }

type tableRotating struct {
	v    *tableVault
	name string
}

func (x tableRotating) Try(_ context.Context, secret []byte, o PutOptions) (Trial, error) {
	x.v.tried, x.v.options = string(secret), o
	x.v.trials++
	return &tableTrial{x}, nil
}

// tableTrial sends the secret that is tried as a bearer token.
type tableTrial struct{ tableRotating }

func (x *tableTrial) Lease() gateway.Lease { return trialLease{x.v.tried, x.v.ready} }
func (x *tableTrial) Close()               { x.v.trials-- }
func (x *tableTrial) Keep(context.Context) (Stored, error) {
	return x.v.write(x.name, x.v.held[x.name].Destination), nil
}

const whoAmI = `contract: v1
action: who_am_i
version: 1.0.0
summary: Say whose account this is.
owner: tests
effect: read
input: {type: object, additionalProperties: false, properties: {}}
route: {target: accounts}
request:
  method: GET
  path: /user
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [login], properties: {login: {type: string, pattern: '^[a-z]{1,16}$', maxLength: 16}}}
      success: {account: /login}
result: {type: object, additionalProperties: false, required: [account], properties: {account: {type: string, pattern: '^[a-z]{1,16}$', maxLength: 16}}}
`

// accounts adds a remote system that knows one token, and the action that asks
// whose it is.
func (r *rig) accounts(token string) {
	r.t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if q.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"login":"robot"}`)
	}))
	r.t.Cleanup(up.Close)
	r.must(os.MkdirAll(filepath.Join(r.dir, "who_am_i"), 0o700))
	r.must(os.WriteFile(filepath.Join(r.dir, "who_am_i", "contract.yaml"), []byte(whoAmI), 0o600))
	r.edit("targets.yaml", "targets:\n", "targets:\n  accounts: {url: '"+up.URL+"', allow: [loopback], identity: account-bot, actions: [who_am_i], effects: [read]}\n")
	r.edit("targets.yaml", "identities:\n", "identities:\n  account-bot: {kind: bearer}\n")
	r.force()
	r.vault.check = "who_am_i"
	r.vault.write("account-bot", up.URL)
}

// A new secret replaces the stored one only after the remote system took it.
func TestRotateProvesFirst(t *testing.T) {
	r := newRig(t)
	r.accounts("a secret of the tests")
	rotate := func(of params) Rotated {
		t.Helper()
		out, err := r.perform(opRotate, "account-bot", of, r.proved(opRotate, "account-bot", of))
		r.must(err)
		if r.vault.trials != 0 {
			t.Error("a trial is still there")
		}
		return out.(Rotated)
	}
	out := rotate(params{"label": "second key", "expires": "2999-01-01T00:00:00Z"})
	if !out.Rotated || out.Stored.Generation != 2 || !out.Proof.OK || out.Proof.Data["account"] != "robot" {
		t.Fatalf("%+v %+v", out, out.Proof)
	}
	if o := r.vault.options; o.Label != "second key" || o.Expires.Year() != 2999 {
		t.Errorf("%+v", o)
	}
	if d := r.decided(opRotate); d.Target != "account-bot" || d.Detail["action"] != "who_am_i" || d.Detail["generation"] != uint64(1) || d.Actor != "uid 0" {
		t.Errorf("recorded: %+v", d)
	}

	r = newRig(t)
	r.accounts("another secret than that")
	if out := rotate(nil); out.Rotated || out.Stored != nil || out.Proof.Code != fault.RemoteUnauthenticated {
		t.Errorf("%+v %+v", out, out.Proof)
	}
	if g := r.vault.held["account-bot"].Generation; g != 1 {
		t.Errorf("generation %d is stored", g)
	}
	r.decided(opRotateFailed)
	if out := rotate(params{"unproved": true}); !out.Rotated || out.Proof != nil || r.vault.held["account-bot"].Generation != 2 {
		t.Errorf("%+v %+v", out, out.Proof)
	}
}

// Where no action is named, an exchange for a token is the proof.
func TestRotateProvesByExchange(t *testing.T) {
	r := newRig(t)
	r.vault.write("deploy-test-bot", "https://old.example")
	r.vault.exchanges, r.vault.ready = true, fault.Newf(fault.RemoteUnauthenticated, "invalid_client")
	rotate := func() Rotated {
		t.Helper()
		out, err := r.perform(opRotate, "deploy-test-bot", nil, r.proved(opRotate, "deploy-test-bot", nil))
		r.must(err)
		return out.(Rotated)
	}
	if out := rotate(); out.Rotated || out.Proof.Code != fault.RemoteUnauthenticated || !strings.Contains(out.Proof.Cause, "invalid_client") || r.vault.held["deploy-test-bot"].Generation != 1 {
		t.Errorf("%+v %+v", out, out.Proof)
	}
	r.vault.ready = nil
	if out := rotate(); !out.Rotated || !out.Proof.OK || r.vault.held["deploy-test-bot"].Generation != 2 {
		t.Errorf("%+v", out)
	}
	ch, err := r.challenge(opRotate, "deploy-test-bot", nil)
	if r.must(err); !strings.Contains(ch.Covers, "once it was exchanged for a token") || strings.Contains(ch.Covers, "fetched") {
		t.Error(ch.Covers)
	}
	r.vault.from = "bao:secret/deploy#token" // a person is told that the source is left
	ch, err = r.challenge(opRotate, "deploy-test-bot", nil)
	if r.must(err); !strings.Contains(ch.Covers, `no longer fetched from "bao:secret/deploy#token"`) {
		t.Error(ch.Covers)
	}
}

// The stored secret is proved in a read session, by the site file's action or the
// one that was asked for.
func TestProveRoute(t *testing.T) {
	r := newRig(t)
	r.accounts("x")
	prove := func(name string, body params) (any, error) { return r.api.proveIdentity(r.request(name, body)) }
	out, err := prove("account-bot", nil)
	r.must(err)
	// The rig's vault gives no lease.
	if p := out.(gateway.ProvedIdentity); p.OK || p.Code != fault.IdentityUnavailable || p.Action != "who_am_i" {
		t.Errorf("%+v", p)
	}
	for what, c := range map[string]struct {
		name  string
		body  params
		check string
		code  string
	}{
		"another member":     {"account-bot", params{"send": true}, "who_am_i", "INVALID_ARGUMENT"},
		"action is a number": {"account-bot", params{"action": 1.0}, "who_am_i", "INVALID_ARGUMENT"},
		"no action at all":   {"account-bot", nil, "", "INVALID_ARGUMENT"},
		"it changes":         {"account-bot", params{"action": "deploy_release"}, "", "INVALID_ARGUMENT"},
		"another identity's": {"deploy-test-bot", params{"action": "who_am_i"}, "", "INVALID_ARGUMENT"},
		"unknown":            {"account-bot", params{"action": "nothing"}, "", "UNKNOWN_ACTION"},
	} {
		r.vault.check = c.check
		if _, err := prove(c.name, c.body); err == nil || translate(err).Code != c.code {
			t.Errorf("%s: %v, want %s", what, err, c.code)
		}
	}
}

// What may be said of a secret is bounded before a person proves anything.
func TestPutOptions(t *testing.T) {
	r := newRig(t)
	r.vault.write("deploy-test-bot", "https://old.example")
	for _, op := range []string{opPut, opRotate} {
		for what, of := range map[string]params{
			"expires is no time":   {"expires": "tomorrow"},
			"expires without zone": {"expires": "2999-01-01T00:00:00"},
			"expires is a number":  {"expires": 1.0},
			"expired":              {"expires": time.Now().Add(-time.Second).Format(time.RFC3339)},
			"label is a list":      {"label": []any{}},
			"source is a number":   {"source": 1.0},
		} {
			if op == opRotate {
				of["unproved"] = true // and a source is no member at all
			}
			if _, err := r.challenge(op, "deploy-test-bot", of); err == nil || translate(err).Code != "INVALID_ARGUMENT" {
				t.Errorf("%s, %s: %v", op, what, err)
			}
		}
	}
	for what, of := range map[string]params{
		"unproved and an action": {"unproved": true, "action": "who_am_i"}, "no action": {}, "an action that changes": {"action": "deploy_release"},
	} {
		if _, err := r.challenge(opRotate, "deploy-test-bot", of); err == nil || translate(err).Code != "INVALID_ARGUMENT" {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.vault.sources = []SourceView{{Name: "bao"}}
	of := params{"label": "night", "source": "bao:kv/a", "expires": "2999-01-01T00:00:00Z"}
	ch, err := r.challenge(opPut, "deploy-test-bot", of)
	if r.must(err); !strings.Contains(ch.Covers, `expires at 2999-01-01T00:00:00Z, labelled "night", fetched from "bao:kv/a"`) {
		t.Error(ch.Covers)
	}
	_, err = r.perform(opPut, "deploy-test-bot", of, proofOf(ch))
	if r.must(err); r.vault.options.Source != "bao:kv/a" {
		t.Errorf("%+v", r.vault.options)
	}
	body := params{"source": "bao:kv/a", "proof": r.proved(opPut, "deploy-test-bot", params{"source": "bao:kv/a"}), "secret": base64.StdEncoding.EncodeToString([]byte("both at once"))}
	if _, err := r.api.widen(wideningOf(opPut), r.request("deploy-test-bot", body)); translate(err).Code != "INVALID_ARGUMENT" {
		t.Errorf("a secret and a source: %v", err)
	}
}

// A locked vault decides nothing about an identity, and still shows what the site
// file says.
func TestIdentityOfALockedVault(t *testing.T) {
	r := newRig(t)
	r.vault.Lock("")
	v, err := r.api.identity(r.request("deploy-test-bot", nil))
	if r.must(err); v.(IdentityDetail).State != IdentityLocked {
		t.Errorf("%+v", v)
	}
	if _, err := r.api.stored("deploy-test-bot"); fault.CodeOf(err) != fault.VaultLocked {
		t.Error(err)
	}
}
