package vault

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

func TestCreateUnlockLease(t *testing.T) {
	v, path := create(t, cheap)
	b := bearer()
	gen := put(t, v, "deploy-bot", planted, b)
	if gen < 2 {
		t.Errorf("generation %d", gen)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	again, err := Open(path, cheap)
	if err != nil {
		t.Fatal(err)
	}
	if s := again.State(); s.State != StateSealed || s.Identities != 0 || s.Backend != "file" {
		t.Errorf("got %+v", s)
	}
	unlock(t, again)
	if got := attached(t, again, "deploy-bot", madeFor(b)); got != "Bearer "+planted {
		t.Errorf("got %q", got)
	}
	if s := again.State(); s.State != StateOpen || s.Identities != 1 || !strings.HasPrefix(s.Rollback, "not detectable") {
		t.Errorf("got %+v", s)
	}
	list := again.List()
	if len(list) != 1 || list[0].Name != "deploy-bot" || list[0].Generation != gen || list[0].Suspended || time.Since(list[0].Updated) > time.Minute {
		t.Errorf("got %+v", list)
	}
}

func TestASealedVaultAnswersVaultLocked(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", planted, bearer())
	v.Lock("test")
	ctx := t.Context()
	_, leaseErr := v.Lease(ctx, "a")
	_, putErr := v.Put(ctx, "a", bearer(), sec(planted), false)
	_, genErr := v.Generation(ctx, "a")
	_, keyErr := v.Subkey("x")
	_, proofErr := v.ProofParams()
	_, _, stateErr := v.GetState("x")
	for name, err := range map[string]error{
		"lease": leaseErr, "put": putErr, "generation": genErr, "subkey": keyErr, "params": proofErr, "get": stateErr,
		"put state": v.PutState("x", nil), "delete": v.Delete(ctx, "a"), "rebind": v.Rebind(ctx, "a", bearer()),
		"operator": v.SetOperatorPassphrase(sec("another one")), "proof": v.CheckProof(nil, nil), "open": v.CheckOpen(),
	} {
		if fault.CodeOf(err) != fault.VaultLocked {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if v.List() != nil {
		t.Error("a sealed vault lists identities")
	}
}

func TestNothingInTheFileIsClear(t *testing.T) {
	v, path := create(t, cheap)
	b := bearer()
	put(t, v, "deploy-bot", planted, b)
	if err := v.PutState("a fact", []byte("the value of it")); err != nil {
		t.Fatal(err)
	}
	if err := v.SetOperatorPassphrase(sec("operator passphrase")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, previousPath(path)} {
		for _, clear := range []string{planted, "deploy-bot", b.Host, "a fact", "the value", goodPass, "operator"} {
			if bytes.Contains(read(t, p), []byte(clear)) {
				t.Errorf("%s shows %q", p, clear)
			}
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		l, err := v.Lease(t.Context(), "deploy-bot")
		if err != nil {
			t.Fatal(err)
		}
		out := fmt.Sprintf(verb, v) + fmt.Sprintf(verb, l) + fmt.Sprintf(verb, *l.scanner)
		l.Close()
		if strings.Contains(out, planted) || strings.Contains(out, fmt.Sprintf("%x", planted)) {
			t.Errorf("%s prints a secret", verb)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	there, before := filepath.Join(dir, "there"), filepath.Join(dir, "before")
	write(t, there, []byte("x"))
	write(t, previousPath(before), []byte("x"))
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	weak := cheap
	weak.DangerouslyWeakKDF = false
	dear := Options{KDF: KDFParams{Time: 1000, MemoryKiB: 64 << 10, Threads: 4}}
	for _, c := range []struct {
		name, path, pass string
		o                Options
		want             error
	}{
		{"a file that is there", there, goodPass, cheap, ErrExists},
		{"a previous generation", before, goodPass, cheap, ErrExists},
		{"a dangling link", filepath.Join(dir, "link"), goodPass, cheap, ErrExists},
		{"an empty passphrase", filepath.Join(dir, "new"), "", cheap, ErrBadPassphrase},
		{"a huge passphrase", filepath.Join(dir, "new"), strings.Repeat("x", 2000), cheap, ErrBadPassphrase},
		{"a weak derivation", filepath.Join(dir, "new"), goodPass, weak, ErrWeakKDF},
		{"an absurd derivation", filepath.Join(dir, "new"), goodPass, dear, ErrWeakKDF},
		{"no folder", filepath.Join(dir, "no", "new"), goodPass, cheap, os.ErrNotExist},
	} {
		_, err := Create(c.path, sec(c.pass), c.o)
		if err == nil {
			t.Errorf("%s is taken", c.name)
		}
		wantErr(t, err, c.want)
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
		t.Error("a refused vault was made")
	}
}

func TestOpenRefuses(t *testing.T) {
	v, good := create(t, cheap)
	put(t, v, "a", planted, bearer())
	content := read(t, good)
	dir := t.TempDir()
	path := func(name string, make func(p string)) string {
		p := filepath.Join(dir, name)
		make(p)
		return p
	}
	for _, c := range []struct {
		name string
		path string
		want error
		text string
	}{
		{"nothing there", filepath.Join(dir, "none"), ErrAbsent, ""},
		{"only the previous one", path("gone", func(p string) { write(t, previousPath(p), content) }), ErrAbsent, "gone.previous is there"},
		{"readable by the group", path("group", func(p string) { write(t, p, content); os.Chmod(p, 0o640) }), ErrNotPrivate, "0640"},
		{"readable by all", path("all", func(p string) { write(t, p, content); os.Chmod(p, 0o604) }), ErrNotPrivate, "0604"},
		{"a program", path("exec", func(p string) { write(t, p, content); os.Chmod(p, 0o700) }), ErrNotPrivate, "0700"},
		{"a link", path("link", func(p string) { os.Symlink(good, p) }), ErrNotPrivate, "symbolic link"},
		{"a folder", path("dir", func(p string) { os.Mkdir(p, 0o700) }), ErrNotPrivate, "not a regular file"},
		{"an empty file", path("empty", func(p string) { write(t, p, nil) }), ErrDamaged, "not a vault file"},
		{"another file", path("other", func(p string) { write(t, p, []byte("name: value, and more of it to be longer than a magic")) }), ErrDamaged, "not a vault"},
		{"cut short", path("cut", func(p string) { write(t, p, content[:len(content)-1]) }), ErrDamaged, "torn or altered"},
		{"with more behind", path("more", func(p string) { write(t, p, append(bytes.Clone(content), 0)) }), ErrDamaged, "torn or altered"},
		{"huge", path("huge", func(p string) { write(t, p, content); os.Truncate(p, maxFile+10) }), ErrDamaged, "larger than"},
	} {
		_, err := Open(c.path, cheap)
		wantErr(t, err, c.want)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.text)
		}
	}
	if _, err := Open(good, cheap); err != nil {
		t.Error(err)
	}
}

func TestADamagedVaultNamesThePreviousOne(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	b := read(t, path)
	b[len(b)/2] ^= 1
	write(t, path, b)
	_, err := Open(path, cheap)
	wantErr(t, err, ErrDamaged)
	if !strings.Contains(err.Error(), previousPath(path)) {
		t.Errorf("got %v", err)
	}
	old := reopen(t, previousPath(path), cheap)
	if len(old.List()) != 0 {
		t.Error("the previous generation is not the one before")
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	left := filepath.Join(filepath.Dir(path), ".vault.tmp-0123456789abcdef")
	write(t, left, []byte("half"))
	if _, err := Open(path, cheap); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("the leftover is still there")
	}
}

func TestSubkeys(t *testing.T) {
	v, path := create(t, cheap)
	a, err := v.Subkey("ledger index")
	if err != nil || a.Len() != 32 {
		t.Fatal(a.Len(), err)
	}
	b, _ := v.Subkey("ledger wrap")
	v.Lock("test")
	unlock(t, v)
	again, _ := v.Subkey("ledger index")
	other, _ := reopen(t, path, cheap).Subkey("ledger index")
	if a.Equal(b) || !a.Equal(again) || !a.Equal(other) {
		t.Error("subkeys do not follow their labels")
	}
	w, _ := create(t, cheap)
	if c, _ := w.Subkey("ledger index"); a.Equal(c) {
		t.Error("two vaults share a subkey")
	}
}

func TestStates(t *testing.T) {
	v, path := create(t, cheap)
	in := []byte("daemon-1")
	if err := v.PutState("daemon id", in); err != nil {
		t.Fatal(err)
	}
	in[0] = 'X'
	if err := v.PutState("empty", nil); err != nil {
		t.Fatal(err)
	}
	v = reopen(t, path, cheap)
	b, ok, err := v.GetState("daemon id")
	if string(b) != "daemon-1" || !ok || err != nil {
		t.Errorf("got %q %v %v", b, ok, err)
	}
	if b, ok, err := v.GetState("empty"); len(b) != 0 || !ok || err != nil {
		t.Errorf("got %q %v %v", b, ok, err)
	}
	if _, ok, err := v.GetState("none"); ok || err != nil {
		t.Errorf("got %v %v", ok, err)
	}
	wantErr(t, v.PutState("", nil), ErrTooLarge)
	wantErr(t, v.PutState(strings.Repeat("n", 65), nil), ErrTooLarge)
	wantErr(t, v.PutState("n", make([]byte, maxStateBytes+1)), ErrTooLarge)
}

func TestTheDefaultDerivationIsAtLeastTheFloor(t *testing.T) {
	p, err := newKDF(Options{})
	if err != nil || p.belowFloor() || p.check() != nil {
		t.Errorf("got %+v, %v", p, err)
	}
	if floorKDF != (KDFParams{3, 64 << 10, 4}) {
		t.Errorf("the floor is %+v", floorKDF)
	}
	if _, err := newKDF(Options{KDF: floorKDF}); err != nil {
		t.Error(err)
	}
}

func TestNoLease(t *testing.T) {
	l := NoLease()
	h := http.Header{"Accept": {"application/json"}}
	if err := l.Attach(headers(h), Made{}); err != nil || len(h) != 1 {
		t.Errorf("got %v, %v", h, err)
	}
	if l.Scan([]byte(planted)) != nil || l.Generation() != 0 {
		t.Error("it holds something")
	}
	l.Close()
	l.Close()
}

// owned is a private regular file of some user.
type owned struct {
	os.FileInfo
	uid uint32
}

func (owned) Mode() os.FileMode { return fileMode }
func (o owned) Sys() any        { return &syscall.Stat_t{Uid: o.uid} }

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	if err := checkPrivate("vault", owned{uid: uint32(os.Geteuid())}); err != nil {
		t.Error(err)
	}
	err := checkPrivate("vault", owned{uid: 4242})
	wantErr(t, err, ErrNotPrivate)
	if err == nil || !strings.Contains(err.Error(), "belongs to user 4242") {
		t.Errorf("got %v", err)
	}
	if os.Geteuid() != 0 {
		return // only root can make a real one
	}
	_, path := create(t, cheap)
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, cheap)
	wantErr(t, err, ErrNotPrivate)
}
