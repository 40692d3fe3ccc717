package vault

import (
	"errors"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

func TestRepeatedEchoesSuspendOneIdentity(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	put(t, v, "b", planted+"-b", bearer())
	var alerts []string
	v.OnSuspend(func(name string) { alerts = append(alerts, name) })
	v.Suspect("nobody")
	v.Suspect("a")
	v.Suspect("a")
	put(t, v, "a", planted+"-new", bearer()) // a new secret starts a new count
	v.Suspect("a")
	v.Suspect("a")
	if _, err := v.Generation(t.Context(), "a"); err != nil {
		t.Errorf("suspended too early: %v", err)
	}
	for range 3 {
		v.Suspect("a")
	}
	if strings.Join(alerts, " ") != "a" {
		t.Errorf("alerts: %v", alerts)
	}
	v = reopen(t, path, cheap)
	_, err := v.Lease(t.Context(), "a")
	wantCode(t, err, fault.IdentityUnavailable)
	if got := v.List(); !got[0].Suspended || got[1].Suspended {
		t.Errorf("got %+v", got)
	}
	attached(t, v, "b", madeFor(bearer()))
	if err := v.Rebind(t.Context(), "a", bearer()); err != nil {
		t.Fatal(err)
	}
	if !v.List()[0].Suspended {
		t.Error("a new binding ended the suspension")
	}
	put(t, v, "a", planted+"-newer", bearer())
	attached(t, v, "a", madeFor(bearer()))
}

func TestEchoesCountWhileLocked(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	l, err := v.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v.Lock("test")
	for range 3 {
		v.Suspect("a")
	}
	unlock(t, v)
	_, err = v.Lease(t.Context(), "a")
	wantCode(t, err, fault.IdentityUnavailable)
	if err := v.PutState("x", nil); err != nil { // the next save keeps it
		t.Fatal(err)
	}
	if !reopen(t, path, cheap).List()[0].Suspended {
		t.Error("the suspension was not saved")
	}
}

func TestABackendSeesCiphertextOnly(t *testing.T) {
	m := newMemory()
	o := cheap
	o.Backend = m
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	put(t, v, "a", planted, bearer())
	if len(m.items) != 2 { // the entry and the generation counter
		t.Errorf("%d items", len(m.items))
	}
	for name, b := range m.items {
		if strings.Contains(string(b), planted) || strings.Contains(string(read(t, path)), planted) {
			t.Errorf("%s is clear", name)
		}
	}
	v = reopen(t, path, o)
	if got := attached(t, v, "a", madeFor(bearer())); got != "Bearer "+planted {
		t.Errorf("got %q", got)
	}
	to := bearer()
	to.Port = 8443
	if err := v.Rebind(t.Context(), "a", to); err != nil {
		t.Fatal(err)
	}
	attached(t, v, "a", madeFor(to))
	if err := v.Delete(t.Context(), "a"); err != nil || len(m.items) != 1 {
		t.Errorf("got %v with %d items", err, len(m.items))
	}
}

func TestABackendThatFails(t *testing.T) {
	m := newMemory()
	o := cheap
	o.Backend = m
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	before := len(read(t, path))
	m.setFail(ErrKeychainLocked)
	_, err := v.Lease(t.Context(), "a")
	wantCode(t, err, fault.IdentityUnavailable)
	wantErr(t, err, ErrKeychainLocked)
	_, err = v.Put(t.Context(), "b", bearer(), sec(planted), false)
	wantErr(t, err, ErrKeychainLocked)
	wantErr(t, v.Rebind(t.Context(), "a", bearer()), ErrKeychainLocked)
	if len(v.List()) != 1 || len(read(t, path)) != before {
		t.Error("a refused change was kept")
	}
	v.Lock("test")
	unlock(t, v) // a locked keychain does not keep the operator out
	if s := v.State(); !strings.Contains(s.Rollback, "not detectable: memory: the keychain is locked") {
		t.Errorf("got %+v", s)
	}
	m.setFail(nil)
	attached(t, v, "a", madeFor(bearer()))
	for name := range m.items {
		if strings.Contains(name, "/identity/a/") {
			m.items[name][30] ^= 1
		}
	}
	_, err = v.Lease(t.Context(), "a")
	wantCode(t, err, fault.IdentityUnavailable)
	if err := errors.Join(v.Delete(t.Context(), "a")); err != nil {
		t.Error(err)
	}
	plain := reopen(t, path, cheap)
	if len(plain.List()) != 0 {
		t.Error("it was not deleted")
	}
}

func TestAnItemInAKeychainThatIsNotConfigured(t *testing.T) {
	o := cheap
	o.Backend = newMemory()
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	_, err := reopen(t, path, cheap).Lease(t.Context(), "a")
	wantCode(t, err, fault.IdentityUnavailable)
}
