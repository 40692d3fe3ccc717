package vault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"chatelaine/internal/secret"
)

func kindsOf(all []Slot) string {
	var out []string
	for _, s := range all {
		out = append(out, s.Kind)
	}
	return strings.Join(out, " ")
}

func TestRotationNeedsItsPassphrase(t *testing.T) {
	o, path, _ := every(t)
	v := reopen(t, path, o)
	_, err := v.PlanRotation("")
	wantErr(t, err, ErrNoSlot) // two passphrases: which?
	_, err = v.PlanRotation("no such")
	wantErr(t, err, ErrNoSlot)
	first := v.Slots()[0].ID
	before := read(t, path)
	_, err = v.RotateKey(t.Context(), first, sec(second))
	wantErr(t, err, ErrWrongPassphrase)
	var soon *ProofError
	if _, err = v.RotateKey(t.Context(), first, sec(goodPass)); !errors.As(err, &soon) {
		t.Errorf("guessing is not slowed down: %v", err)
	}
	v.unlocks = limiter{}
	o.SlotKeychain.(*memory).setFail(ErrKeychainLocked)
	_, err = v.RotateKey(t.Context(), first, sec(goodPass))
	wantErr(t, err, ErrKeychainLocked)
	if string(before) != string(read(t, path)) {
		t.Error("a refused rotation changed the vault")
	}
	if got := attached(t, v, "a", madeFor(bearer())); got != "Bearer "+planted {
		t.Errorf("got %q", got)
	}
}

func TestRotation(t *testing.T) {
	o, path, code := every(t)
	o.Backend = newMemory()
	v := reopen(t, path, o)
	put(t, v, "outside", planted+"2", bearer())
	stolen := read(t, path)
	var oldKey secret.Secret
	v.dataKey.Use(func(b []byte) { oldKey = secret.New(b) })
	sub, err := v.Subkey("ledger wrap")
	if err != nil {
		t.Fatal(err)
	}
	first := v.Slots()[0].ID
	plan, err := v.PlanRotation(first)
	if err != nil || kindsOf(plan.Kept) != "passphrase credential keychain" || kindsOf(plan.Replaced) != "recovery" || kindsOf(plan.Removed) != "passphrase" {
		t.Errorf("got %+v, %v", plan, err)
	}
	next, err := v.RotateKey(t.Context(), first, sec(goodPass))
	if err != nil {
		t.Fatal(err)
	}
	newCode, err := ParseRecoveryCode([]byte(next.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	check := func(v *Vault) {
		t.Helper()
		for name, text := range map[string]string{"a": planted, "outside": planted + "2"} {
			if got := attached(t, v, name, madeFor(bearer())); got != "Bearer "+text {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if again, err := v.Subkey("ledger wrap"); err != nil || !again.Equal(sub) {
			t.Errorf("the ledger's key changed: %v", err)
		}
		if b, ok, err := v.GetState("fact"); string(b) != "value" || !ok || err != nil {
			t.Errorf("the fact is lost: %v", err)
		}
	}
	check(v)
	for _, p := range []string{path, previousPath(path)} {
		b := read(t, p)
		for name, by := range map[string]opener{
			"the removed passphrase": ByPassphrase(sec(second)).by, "the old code": ByCode(code).by,
			"the old key": func(header) (secret.Secret, error) { return oldKey, nil },
		} {
			if _, err := openBytes(b, by); err == nil {
				t.Errorf("%s opens what was saved after", name)
			}
		}
	}
	for _, by := range []opener{ByPassphrase(sec(goodPass)).by, ByCode(newCode).by, func(h header) (secret.Secret, error) { return v.unwrapUnattended(t.Context(), h) }} {
		o2, err := openBytes(read(t, path), by)
		if err != nil {
			t.Error(err)
		}
		o2.dataKey.Wipe()
	}
	if n := len(o.Backend.(*memory).items); n != 3 { // both identities, since there is a backend now, and the counter
		t.Errorf("the backend holds %d entries", n)
	}
	if n := len(o.SlotKeychain.(*memory).items); n != 1 {
		t.Errorf("the keychain holds %d slot secrets", n)
	}
	w := reopen(t, path, o)
	check(w)
	if _, err := w.RotateKey(t.Context(), "", sec(goodPass)); err != nil { // again: the root stays
		t.Fatal(err)
	}
	check(w)
	if _, err := openBytes(stolen, ByPassphrase(sec(second)).by); err != nil {
		t.Error("a copy from before opens with what it had, and the page says so:", err)
	}
}

// spoiling is a counter that puts something in the way of the generation before,
// between the two saves of one change.
type spoiling struct {
	*memory
	path string
}

func (s spoiling) Put(ctx context.Context, name string, b []byte) error {
	_ = os.Remove(previousPath(s.path))
	_ = os.MkdirAll(filepath.Join(previousPath(s.path), "full"), 0o700)
	return s.memory.Put(ctx, name, b)
}

// TestTheSecondSaveFails: what was done is done, its code is not lost, and who
// removes a slot is told that the generation before still opens with it.
func TestTheSecondSaveFails(t *testing.T) {
	spoil := func(v *Vault, path string) {
		t.Helper()
		_ = os.RemoveAll(previousPath(path))
		v.o.GenerationBackend = spoiling{newMemory(), path}
	}
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	spoil(v, path)
	code := codeOf(t, add(t, v, NewSlot{Kind: SlotRecovery}))
	check := func(code secret.Secret) {
		t.Helper()
		w := reopen(t, path, cheap)
		if err := w.UnlockWithCode(t.Context(), code); err != nil {
			t.Error(err)
		}
	}
	check(code)
	spoil(v, path)
	next, err := v.RotateKey(t.Context(), "", sec(goodPass))
	if err != nil {
		t.Fatal(err)
	}
	code, err = ParseRecoveryCode([]byte(next.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	check(code)
	if got := attached(t, v, "a", madeFor(bearer())); got != "Bearer "+planted {
		t.Errorf("got %q", got)
	}
	spoil(v, path)
	if err := v.RemoveSlot(t.Context(), v.Slots()[1].ID); err == nil || !strings.Contains(err.Error(), "it is done, but the generation before it still opens") {
		t.Errorf("got %v", err)
	}
	if len(v.Slots()) != 1 {
		t.Errorf("got %+v", v.Slots())
	}
}

// TestLeasesDuringRotations has calls take credentials while the data key is
// replaced again and again.
func TestLeasesDuringRotations(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", planted, bearer())
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := useOnce(t, v); err != nil && v.CheckOpen() == nil && !strings.Contains(err.Error(), "VAULT_LOCKED") {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		if _, err := v.RotateKey(t.Context(), "", sec(goodPass)); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	v.Lock("test")
	unlock(t, v)
	if err := useOnce(t, v); err != nil {
		t.Error(err)
	}
}

func TestABackup(t *testing.T) {
	o, path, code := every(t)
	o.Backend = newMemory()
	v := reopen(t, path, o)
	put(t, v, "outside", planted+"2", bearer())
	b, err := v.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), planted) {
		t.Error("a backup shows a secret")
	}
	facts, err := LookAtBackup(b)
	if err != nil || !facts.Passphrase || !facts.Recovery || facts.Generation != v.head.generation {
		t.Errorf("got %+v, %v", facts, err)
	}
	img, err := decodeFile(b)
	if err != nil || len(img.slots) != 3 || slices.ContainsFunc(img.slots, slot.opensUnattended) {
		t.Errorf("the backup opens by itself: %+v, %v", img.slots, err)
	}
	_, err = LookAtBackup(b[1:])
	wantErr(t, err, ErrBadBackup)
	v.Lock("test")
	_, err = v.Backup(t.Context())
	wantCode(t, err, "VAULT_LOCKED")

	w, _ := create(t, cheap)
	put(t, w, "a", planted+"new", bearer())
	_, err = w.Import(t.Context(), b, ByPassphrase(sec("no")), false)
	wantErr(t, err, ErrWrongPassphrase)
	var soon *ProofError
	if _, err = w.Import(t.Context(), b, ByPassphrase(sec(goodPass)), false); !errors.As(err, &soon) {
		t.Errorf("guessing is not slowed down: %v", err)
	}
	unlock(t, w) // and holds up no unlock
	w.imports = limiter{}
	_, err = w.Import(t.Context(), b[:len(b)-1], ByPassphrase(sec(goodPass)), false)
	wantErr(t, err, ErrBadBackup)
	got, err := w.Import(t.Context(), b, ByCode(code), false)
	if err != nil || !slices.Equal(got.Added, []string{"outside"}) || !slices.Equal(got.Kept, []string{"a"}) || got.Replaced != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if s := attached(t, w, "a", madeFor(bearer())); s != "Bearer "+planted+"new" {
		t.Errorf("got %q", s)
	}
	got, err = w.Import(t.Context(), b, ByPassphrase(sec(second)), true)
	if err != nil || !slices.Equal(got.Replaced, []string{"a", "outside"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, text := range map[string]string{"a": planted, "outside": planted + "2"} {
		if s := attached(t, w, name, madeFor(bearer())); s != "Bearer "+text {
			t.Errorf("%s: got %q", name, s)
		}
	}
	_, err = w.ProofParams()
	wantErr(t, err, ErrNoOperator) // nothing but identities is taken
}

func rescue(t *testing.T, path string, source []byte, by Way, o Options) Rescued {
	t.Helper()
	r, err := Recover(t.Context(), path, Rescue{Source: source, By: by, Passphrase: sec("after the rescue")}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecover(t *testing.T) {
	o, path, code := every(t)
	o.GenerationFile = filepath.Join(t.TempDir(), "generation")
	v := reopen(t, path, o)
	put(t, v, "b", planted, bearer())
	newest := v.head.generation
	good, previous := read(t, path), read(t, previousPath(path))
	for name, c := range map[string]struct {
		inPlace, source []byte
		by              Way
	}{
		"the passphrases are forgotten": {good, good, ByCode(code)},
		"the file is torn":              {good[:100], previous, ByPassphrase(sec(goodPass))},
		"the file is gone":              {nil, previous, ByCode(code)},
		"an older one is in place":      {previous, previous, ByPassphrase(sec(second))},
	} {
		write(t, previousPath(path), previous)
		write(t, path, c.inPlace)
		r := rescue(t, path, c.source, c.by, o)
		if r.Now <= newest || r.Known < newest || r.Code.IsZero() || r.Identities < 1 {
			t.Errorf("%s: got %+v", name, r)
		}
		if string(read(t, r.Aside)) != string(c.inPlace) {
			t.Errorf("%s: what was in place is lost", name)
		}
		next, err := ParseRecoveryCode([]byte(r.Code.Reveal()))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, previousPath(path)} {
			w, err := Open(p, o)
			if err != nil {
				t.Fatal(err)
			}
			wantErr(t, w.UnlockWithCode(t.Context(), code), ErrWrongCode)
			wantErr(t, w.Unlock(t.Context(), sec(goodPass)), ErrWrongPassphrase)
			w.codes, w.unlocks = limiter{}, limiter{}
			if err := errors.Join(w.Unlock(t.Context(), sec("after the rescue")), w.UnlockWithCode(t.Context(), next)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if s := w.State(); s.State != StateOpen || !strings.HasPrefix(s.Rollback, "generation file") {
				t.Errorf("%s: got %+v", name, s)
			}
		}
		newest = r.Now
	}
}

func TestRecoverRefuses(t *testing.T) {
	o, path, code := every(t)
	good := read(t, path)
	_, other := create(t, cheap)
	for name, c := range map[string]struct {
		r    Rescue
		want error
	}{
		"wrong passphrase": {Rescue{good, ByPassphrase(sec("no")), sec("after the rescue")}, ErrWrongPassphrase},
		"wrong code":       {Rescue{good, ByCode(newCode()), sec("after the rescue")}, ErrWrongCode},
		"no code":          {Rescue{read(t, other), ByCode(code), sec("after the rescue")}, ErrNoSlot},
		"damaged source":   {Rescue{good[:50], ByCode(code), sec("after the rescue")}, ErrBadBackup},
		"another vault's":  {Rescue{read(t, other), ByPassphrase(sec(goodPass)), sec("after the rescue")}, ErrBadBackup},
		"short passphrase": {Rescue{good, ByCode(code), sec("short")}, ErrBadPassphrase},
		"the operator's":   {Rescue{good, ByCode(code), sec("operator's own")}, ErrSamePassphrase},
	} {
		_, err := Recover(t.Context(), path, c.r, o)
		if wantErr(t, err, c.want); err == nil {
			t.Errorf("%s is taken", name)
		}
		if string(read(t, path)) != string(good) {
			t.Fatalf("%s changed the vault", name)
		}
	}
}
