package vault

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/secret"
)

// withWays are options under which a slot of each kind can be made.
func withWays(t testing.TB) (Options, *memory) {
	t.Helper()
	o, box := cheap, newMemory()
	o.CredentialsDir, o.SlotKeychain = t.TempDir(), box
	write(t, filepath.Join(o.CredentialsDir, "chatelaine-vault"), bytes.Repeat([]byte("k"), minCredential))
	return o, box
}

func add(t testing.TB, v *Vault, n NewSlot) Added {
	t.Helper()
	a, err := v.AddSlot(t.Context(), n, ByPassphrase(sec(goodPass)))
	if err != nil {
		t.Fatalf("%s: %v", n.Kind, err)
	}
	return a
}

func codeOf(t testing.TB, a Added) secret.Secret {
	t.Helper()
	s, err := ParseRecoveryCode([]byte(a.Code.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const second = "second passphrase of the test"

// every makes a vault with a slot of each kind that can be made, and all that a
// vault holds.
func every(t testing.TB) (o Options, path string, code secret.Secret) {
	o, _ = withWays(t)
	v, path := create(t, o)
	put(t, v, "a", planted, bearer())
	if err := errors.Join(v.SetOperatorPassphrase(sec("operator's own")), v.PutState("fact", []byte("value"))); err != nil {
		t.Fatal(err)
	}
	add(t, v, NewSlot{Kind: SlotPassphrase, Label: "Jane", Passphrase: sec(second)})
	code = codeOf(t, add(t, v, NewSlot{Kind: SlotRecovery, Label: "safe"}))
	add(t, v, NewSlot{Kind: SlotCredential, Credential: "chatelaine-vault"})
	add(t, v, NewSlot{Kind: SlotKeychain})
	return o, path, code
}

func TestEachSlotOpensTheVault(t *testing.T) {
	o, path, code := every(t)
	fresh := func() *Vault {
		v, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	noCredential, noKeychain := o, o
	noCredential.CredentialsDir, noKeychain.SlotKeychain = "", nil
	for name, unlock := range map[string]func() (*Vault, error){
		"passphrase": func() (*Vault, error) { v := fresh(); return v, v.Unlock(t.Context(), sec(goodPass)) },
		"second":     func() (*Vault, error) { v := fresh(); return v, v.Unlock(t.Context(), sec(second)) },
		"code":       func() (*Vault, error) { v := fresh(); return v, v.UnlockWithCode(t.Context(), code) },
		"keychain":   func() (*Vault, error) { v, _ := Open(path, noCredential); return v, v.UnlockUnattended(t.Context()) },
		"credential": func() (*Vault, error) { v, _ := Open(path, noKeychain); return v, v.UnlockUnattended(t.Context()) },
	} {
		v, err := unlock()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := attached(t, v, "a", madeFor(bearer())); got != "Bearer "+planted {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestSlotsAreListed(t *testing.T) {
	o, path, _ := every(t)
	v := reopen(t, path, o)
	var kinds []string
	for _, s := range v.Slots() {
		kinds = append(kinds, s.Kind)
		if s.ID == "" || !s.Opens || s.Detail == "" || s.Unattended != (s.Kind == SlotCredential || s.Kind == SlotKeychain) {
			t.Errorf("got %+v", s)
		}
	}
	if want := []string{SlotPassphrase, SlotPassphrase, SlotRecovery, SlotCredential, SlotKeychain}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	if s := v.Slots()[1]; s.Label != "Jane" || s.Created.IsZero() {
		t.Errorf("got %+v", s)
	}
	un := v.State().Unattended
	if len(un) != 2 || !strings.Contains(un[1].Detail, "any process of this user can read it") {
		t.Errorf("unattended: %+v", un)
	}
	v.Lock("test")
	if s := v.Slots()[1]; s.Label != "" || len(v.State().Unattended) != 2 {
		t.Errorf("locked: %+v", s)
	}
}

func TestUnattendedIsForTheStartOnly(t *testing.T) {
	o, path, code := every(t)
	v, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.UnlockUnattended(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	v.Lock("by the operator")
	wantErr(t, v.UnlockUnattended(t.Context()), ErrLockedByHand)
	if err := v.UnlockWithCode(t.Context(), code); err != nil {
		t.Error(err)
	}
}

func TestUnattendedSlotsSayWhatIsWrong(t *testing.T) {
	o, path, _ := every(t)
	box := o.SlotKeychain.(*memory)
	try := func(o Options, texts ...string) {
		t.Helper()
		v, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		err = v.UnlockUnattended(t.Context())
		wantErr(t, err, ErrUnattended)
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("got %v, want %q", err, text)
			}
		}
		if s := v.State(); s.State != StateSealed || s.Reason != "started" {
			t.Errorf("got %+v", s)
		}
	}
	box.setFail(ErrKeychainLocked)
	none := o
	none.CredentialsDir = ""
	try(none, "CREDENTIALS_DIRECTORY is not set", "the keychain is locked")
	none.SlotKeychain = nil
	try(none, "no keychain is configured")
	file := filepath.Join(o.CredentialsDir, "chatelaine-vault")
	for text, change := range map[string]func(){
		"has 5 bytes":                         func() { write(t, file, []byte("short")) },
		"has 4097 bytes":                      func() { write(t, file, make([]byte, maxCredential+1)) },
		"is not what the slot was made with":  func() { write(t, file, make([]byte, minCredential)) },
		"no such file":                        func() { os.Remove(file) },
		"too many levels of symbolic links":   func() { _ = os.Symlink("/dev/zero", file) },
		"credential chatelaine-vault: read /": func() { _ = errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
	} {
		_ = os.RemoveAll(file)
		change()
		try(o, text)
	}
	box.setFail(nil)
	for name := range box.items {
		box.items[name] = []byte("short")
	}
	try(o, "has 5 bytes instead of 32")

	plain, path2 := create(t, cheap)
	plain.Lock("test")
	v, err := Open(path2, o)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, v.UnlockUnattended(t.Context()), ErrNoSlot)
	wantErr(t, v.UnlockWithCode(t.Context(), newCode()), ErrNoSlot)
}

func TestSlotsThatCannotBeMade(t *testing.T) {
	o, path, _ := every(t)
	v := reopen(t, path, o)
	before := read(t, path)
	long := strings.Repeat("x", maxLabel+1)
	for name, c := range map[string]struct {
		n    NewSlot
		want error
	}{
		"no kind":              {NewSlot{}, ErrBadSlot},
		"another kind":         {NewSlot{Kind: "tpm"}, ErrBadSlot},
		"passkey":              {NewSlot{Kind: SlotPasskey}, ErrBadSlot},
		"long label":           {NewSlot{Kind: SlotRecovery, Label: long}, ErrBadSlot},
		"label with a line":    {NewSlot{Kind: SlotRecovery, Label: "a\nb"}, ErrBadSlot},
		"no passphrase":        {NewSlot{Kind: SlotPassphrase}, ErrBadPassphrase},
		"short passphrase":     {NewSlot{Kind: SlotPassphrase, Passphrase: sec("seven77")}, ErrBadPassphrase},
		"passphrase twice":     {NewSlot{Kind: SlotPassphrase, Passphrase: sec(second)}, ErrBadPassphrase},
		"operator's":           {NewSlot{Kind: SlotPassphrase, Passphrase: sec("operator's own")}, ErrSamePassphrase},
		"credential unnamed":   {NewSlot{Kind: SlotCredential}, ErrBadSlot},
		"credential elsewhere": {NewSlot{Kind: SlotCredential, Credential: "../../etc/passwd"}, ErrBadSlot},
		"credential missing":   {NewSlot{Kind: SlotCredential, Credential: "other"}, ErrUnattended},
	} {
		_, err := v.AddSlot(t.Context(), c.n, ByPassphrase(sec(goodPass)))
		if wantErr(t, err, c.want); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	o.SlotKeychain.(*memory).setFail(ErrKeychainUnavailable)
	_, err := v.AddSlot(t.Context(), NewSlot{Kind: SlotKeychain}, ByPassphrase(sec(goodPass)))
	wantErr(t, err, ErrKeychainUnavailable)
	if !bytes.Equal(before, read(t, path)) {
		t.Error("a refused slot changed the vault")
	}
	v.o.SlotKeychain = nil
	_, err = v.AddSlot(t.Context(), NewSlot{Kind: SlotKeychain}, ByPassphrase(sec(goodPass)))
	wantErr(t, err, ErrBadSlot)
	for range maxSlots - len(v.head.slots) {
		add(t, v, NewSlot{Kind: SlotRecovery})
	}
	_, err = v.AddSlot(t.Context(), NewSlot{Kind: SlotRecovery}, ByPassphrase(sec(goodPass)))
	wantErr(t, err, ErrTooLarge)
	v.Lock("test")
	_, err = v.AddSlot(t.Context(), NewSlot{Kind: SlotRecovery}, ByPassphrase(sec(goodPass)))
	wantCode(t, err, "VAULT_LOCKED")
}

// TestOnlyWhoCanOpenAddsAWayIn: an open vault and the operator's proof are not
// enough to make a key of one's own.
func TestOnlyWhoCanOpenAddsAWayIn(t *testing.T) {
	o, path, code := every(t)
	v := reopen(t, path, o)
	n := NewSlot{Kind: SlotRecovery}
	for _, w := range []Way{{}, ByPassphrase(sec("operator's own"))} {
		_, err := v.AddSlot(t.Context(), n, w)
		wantErr(t, err, ErrWrongPassphrase)
		v.unlocks = limiter{}
	}
	_, err := v.AddSlot(t.Context(), n, ByCode(newCode()))
	wantErr(t, err, ErrWrongCode)
	var soon *ProofError
	if _, err = v.AddSlot(t.Context(), n, ByCode(code)); !errors.As(err, &soon) {
		t.Errorf("guessing is not slowed down: %v", err)
	}
	v.codes = limiter{}
	if _, err = v.AddSlot(t.Context(), n, ByCode(code)); err != nil {
		t.Error(err)
	}
}

func TestARemovedSlotOpensNothing(t *testing.T) {
	o, path, code := every(t)
	box := o.SlotKeychain.(*memory)
	v := reopen(t, path, o)
	for _, s := range v.Slots()[1:] {
		if err := v.RemoveSlot(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, v.RemoveSlot(t.Context(), "no such"), ErrNoSlot)
	wantErr(t, v.RemoveSlot(t.Context(), v.Slots()[0].ID), ErrLastSlot)
	if len(box.items) != 0 {
		t.Errorf("the keychain still holds %d items", len(box.items))
	}
	for _, p := range []string{path, previousPath(path)} {
		w, err := Open(p, o)
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, w.UnlockUnattended(t.Context()), ErrNoSlot)
		wantErr(t, w.UnlockWithCode(t.Context(), code), ErrNoSlot)
		wantErr(t, w.Unlock(t.Context(), sec(second)), ErrWrongPassphrase)
		w.unlocks = limiter{}
		unlock(t, w)
		if _, there := w.contents.states[factSlot+"x"]; there || len(w.contents.states) != 1 {
			t.Errorf("facts of removed slots stay: %v", w.contents.states)
		}
	}
}

func TestTheLastAttendedSlotStays(t *testing.T) {
	o, _ := withWays(t)
	v, _ := create(t, o)
	first := v.Slots()[0].ID
	add(t, v, NewSlot{Kind: SlotKeychain})
	add(t, v, NewSlot{Kind: SlotCredential, Credential: "chatelaine-vault"})
	v.head.slots = append(v.head.slots, slot{id: newSlotID(), kind: slotPasskey})
	wantErr(t, v.RemoveSlot(t.Context(), first), ErrLastSlot) // nobody can open the others by hand
	code := codeOf(t, add(t, v, NewSlot{Kind: SlotRecovery}))
	if _, err := v.Removable(first); err != nil {
		t.Error(err)
	}
	if err := v.RemoveSlot(t.Context(), first); err != nil {
		t.Error(err)
	}
	v.Lock("test")
	if err := v.UnlockWithCode(t.Context(), code); err != nil {
		t.Error(err)
	}
}

func TestRewrap(t *testing.T) {
	o, path, code := every(t)
	v := reopen(t, path, o)
	ctx := context.Background()
	wantErr(t, v.Rewrap(ctx, sec("not the one"), sec("a new passphrase"), KDFParams{}), ErrWrongPassphrase)
	v.unlocks = limiter{}
	wantErr(t, v.Rewrap(ctx, sec(second), sec("operator's own"), KDFParams{}), ErrSamePassphrase)
	wantErr(t, v.Rewrap(ctx, sec(second), sec(goodPass), KDFParams{}), ErrBadPassphrase) // another slot's
	wantErr(t, v.Rewrap(ctx, sec(second), sec("short"), KDFParams{}), ErrBadPassphrase)
	wantErr(t, v.Rewrap(ctx, sec(second), sec("a new passphrase"), KDFParams{Time: 1000, MemoryKiB: 8, Threads: 1}), ErrWeakKDF)
	if err := v.Rewrap(ctx, sec(second), sec("a new passphrase"), KDFParams{Time: 2, MemoryKiB: 16, Threads: 1}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, previousPath(path)} {
		w, err := Open(p, o)
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, w.Unlock(ctx, sec(second)), ErrWrongPassphrase)
		w.unlocks = limiter{}
		if err := errors.Join(w.Unlock(ctx, sec("a new passphrase")), w.Unlock(ctx, sec(goodPass)), w.UnlockWithCode(ctx, code)); err != nil {
			t.Error(err)
		}
		last := w.Slots()[len(w.Slots())-1]
		if last.Label != "Jane" || !strings.Contains(last.Detail, "2 passes") {
			t.Errorf("got %+v", last)
		}
	}
	// The same passphrase at another cost.
	if err := v.Rewrap(ctx, sec("a new passphrase"), sec("a new passphrase"), KDFParams{Time: 3, MemoryKiB: 16, Threads: 1}); err != nil {
		t.Error(err)
	}
	strict := v
	strict.o.DangerouslyWeakKDF = false
	wantErr(t, strict.Rewrap(ctx, sec(goodPass), sec(goodPass), KDFParams{Time: 1, MemoryKiB: 8, Threads: 1}), ErrWeakKDF)
}

func TestWrongTriesOfOneWayHoldUpNoOther(t *testing.T) {
	o, path, code := every(t)
	v := reopen(t, path, o)
	for range manyFailures {
		v.unlocks.next = v.unlocks.next.AddDate(-1, 0, 0)
		wantErr(t, v.Unlock(t.Context(), sec("guess of a stranger")), ErrWrongPassphrase)
	}
	var soon *ProofError
	err := v.Unlock(t.Context(), sec(goodPass))
	if !errors.As(err, &soon) || soon.RetryAfter <= afterWrong || !strings.Contains(err.Error(), "try again in") {
		t.Errorf("got %v", err)
	}
	for range manyFailures { // and proofs
		v.proofs.next = v.proofs.next.AddDate(-1, 0, 0)
		wantErr(t, v.CheckProof([]byte("c"), []byte("wrong")), ErrProofRefused)
	}
	right := mac(v.contents.operator.key, []byte(infoProof), []byte("c"))
	if err := v.CheckProof([]byte("c"), right); !errors.As(err, &soon) {
		t.Errorf("got %v", err)
	}
	if err := v.UnlockUnattended(t.Context()); err != nil {
		t.Error(err)
	}
	if err := v.CheckProof([]byte("c"), right); !errors.As(err, &soon) {
		t.Errorf("an unlock without a person set the count back: %v", err)
	}
	if err := v.UnlockWithCode(t.Context(), code); err != nil {
		t.Error(err)
	}
	if err := v.CheckProof([]byte("c"), right); err != nil {
		t.Errorf("after an unlock by a person: %v", err)
	}
	wantErr(t, v.UnlockWithCode(t.Context(), newCode()), ErrWrongCode)
	if err := v.UnlockWithCode(t.Context(), code); !errors.As(err, &soon) {
		t.Errorf("codes can be guessed without a pause: %v", err)
	}
}

// TestNoFlippedBitOpensAnySlot flips every bit of a file with every kind of
// slot, makes the checksum fit again, and tries every way in.
func TestNoFlippedBitOpensAnySlot(t *testing.T) {
	o, path, code := every(t)
	good := read(t, path)
	v, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	ways := []opener{ByPassphrase(sec(goodPass)).by, ByCode(code).by, func(h header) (secret.Secret, error) { return v.unwrapUnattended(t.Context(), h) }}
	for _, w := range ways {
		if _, err := openBytes(good, w); err != nil {
			t.Fatal(err)
		}
	}
	for i := range len(good) - 32 {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if _, err := decodeFile(b); !errors.Is(err, ErrDamaged) {
				t.Fatalf("bit %d of byte %d: got %v", bit, i, err)
			}
			if _, err := openBytes(resum(b), ways[(i+bit)%len(ways)]); err == nil {
				t.Fatalf("bit %d of byte %d flipped and the checksum made to fit: it opens", bit, i)
			}
		}
	}
}

// TestSlotsByHand takes slots out and puts others in, as somebody would who can
// write the file and knows the format.
func TestSlotsByHand(t *testing.T) {
	o, path, _ := every(t)
	img, err := decodeFile(read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	_, other := create(t, cheap)
	foreign, err := decodeFile(read(t, other))
	if err != nil {
		t.Fatal(err)
	}
	forge := func(slots []slot) []byte {
		h := img.header
		h.slots = slots
		w := &writer{b: h.encode()}
		w.raw(img.mac)
		w.blob(img.body)
		return resum(append(w.b, make([]byte, 32)...))
	}
	cases := map[string][]slot{"another vault's": append(slices.Clone(img.slots), foreign.slots...)}
	for i := range img.slots {
		cases["without "+img.slots[i].hex()] = append(slices.Clone(img.slots[:i]), img.slots[i+1:]...)
		swapped := slices.Clone(img.slots)
		swapped[0], swapped[i] = swapped[i], swapped[0]
		if i > 0 {
			cases["swapped "+img.slots[i].hex()] = swapped
		}
	}
	for name, slots := range cases {
		write(t, path, forge(slots))
		v, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		err = v.Unlock(t.Context(), sec(goodPass))
		if errors.Is(err, ErrWrongPassphrase) {
			continue // the slot of this passphrase is gone
		}
		if wantErr(t, err, ErrDamaged); v.State().State != StateDamaged {
			t.Errorf("%s: %v", name, v.State())
		}
	}
}

// TestAbsurdCostsAreRefusedBeforeAnythingRuns decodes files whose derivation
// would take a gibibyte and more.
func TestAbsurdCostsAreRefusedBeforeAnythingRuns(t *testing.T) {
	_, good := full(t)
	img, err := decodeFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []KDFParams{{1, 1 << 31, 1}, {1 << 31, 1 << 20, 4}, {64, 1 << 20, 16}, {1, 1<<20 + 1, 1}} {
		w := &writer{}
		newLock(p).encode(w)
		h := img.header
		h.slots = []slot{img.slots[0]}
		h.slots[0].params = w.b
		f := &writer{b: h.encode()}
		f.raw(img.mac)
		f.blob(img.body)
		b := resum(append(f.b, make([]byte, 32)...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := openBytes(b, ByPassphrase(sec(goodPass)).by)
		runtime.ReadMemStats(&after)
		wantErr(t, err, ErrDamaged)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%+v: %d bytes were taken first", p, got)
		}
	}
}
