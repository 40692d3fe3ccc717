package vault

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/secret"
)

// full makes a small vault with something of everything in it.
func full(t testing.TB) (path string, data []byte) {
	v, path := create(t, cheap)
	b := bearer()
	b.CADigest, b.Pins = "ca", []string{"p", "q"}
	put(t, v, "a", planted, b)
	if _, err := v.PutIdentity(t.Context(), "b", withMore(), sec(planted), PutOptions{Label: "bot", Expires: time.UnixMilli(1893456000000)}); err != nil {
		t.Fatal(err)
	}
	if err := v.SetOperatorPassphrase(sec("operator's own")); err != nil {
		t.Fatal(err)
	}
	if err := v.PutState("fact", []byte("value")); err != nil {
		t.Fatal(err)
	}
	return path, read(t, path)
}

// withMore is a binding with everything that its kind can have.
func withMore() Binding {
	return Binding{
		Kind: KindOAuth2Client, Scheme: "https", Host: "api.example", Port: 443, Params: []Param{{"client_id", "abc"}, {"scopes", "a b"}},
		Token: &Place{Scheme: "https", Host: "login.example", Port: 8443, Path: "/token", CADigest: "ca", Pins: []string{"p", "q"}},
	}
}

// opens says whether the bytes open with the right passphrase.
func opens(t testing.TB, path string, b []byte) bool {
	write(t, path, b)
	v, err := Open(path, cheap)
	if err == nil {
		err = v.Unlock(t.Context(), sec(goodPass))
	}
	refuseLeak(t, err)
	return err == nil
}

func TestNoFlippedBitOpens(t *testing.T) {
	path, good := full(t)
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if _, err := decodeFile(b); err == nil {
				t.Fatalf("bit %d of byte %d flipped: the checksum fits", bit, i)
			}
			if bit != i%8 {
				continue // the keyed checks: one bit a byte is enough
			}
			if i < len(good)-32 {
				b = resum(b)
			}
			if opens(t, path, b) {
				t.Fatalf("bit %d of byte %d flipped and the checksum made to fit: it opens", bit, i)
			}
		}
	}
	if !opens(t, path, good) {
		t.Error("the good file does not open")
	}
}

func TestNoTornFileOpens(t *testing.T) {
	path, good := full(t)
	for n := range good {
		b := good[:n]
		if _, err := decodeFile(b); err == nil {
			t.Fatalf("%d bytes of %d decode", n, len(good))
		}
		if n > 32 && opens(t, path, resum(b)) {
			t.Fatalf("%d bytes of %d with a checksum open", n, len(good))
		}
		torn := append(bytes.Clone(b), make([]byte, len(good)-n)...)
		if !bytes.Equal(torn, good) && opens(t, path, torn) {
			t.Fatalf("%d bytes and zeros open", n)
		}
	}
}

func TestHeadersOutOfBounds(t *testing.T) {
	_, good := full(t)
	img, err := decodeFile(good)
	if err != nil {
		t.Fatal(err)
	}
	lockBytes := func(p KDFParams) []byte {
		w := &writer{}
		newLock(p).encode(w)
		return w.b
	}
	for name, change := range map[string]func(h *header){
		"no slot":              func(h *header) { h.slots = nil },
		"17 slots":             func(h *header) { h.slots = manySlots(17) },
		"generation 0":         func(h *header) { h.generation = 0 },
		"slot kind 0":          func(h *header) { h.slots[0].kind = 0 },
		"slot kind 6":          func(h *header) { h.slots[0].kind = 6 },
		"no passes":            func(h *header) { h.slots[0].params = lockBytes(KDFParams{0, 64, 1}) },
		"absurd passes":        func(h *header) { h.slots[0].params = lockBytes(KDFParams{1 << 31, 64, 1}) },
		"absurd memory":        func(h *header) { h.slots[0].params = lockBytes(KDFParams{1, 1 << 31, 1}) },
		"absurd threads":       func(h *header) { h.slots[0].params = lockBytes(KDFParams{1, 1 << 20, 255}) },
		"too little memory":    func(h *header) { h.slots[0].params = lockBytes(KDFParams{1, 8, 4}) },
		"absurd cost":          func(h *header) { h.slots[0].params = lockBytes(KDFParams{64, 1 << 20, 4}) },
		"absurd cost in all":   func(h *header) { h.slots = costlySlots(h.slots[0]) },
		"another derivation":   func(h *header) { h.slots[0].params[0] = 2 },
		"longer parameters":    func(h *header) { h.slots[0].params = append(h.slots[0].params, 0) },
		"shorter wrapped key":  func(h *header) { h.slots[0].wrapped = h.slots[0].wrapped[1:] },
		"parameters too long":  func(h *header) { h.slots[0].kind, h.slots[0].params = slotPasskey, make([]byte, maxSlotParams+1) },
		"wrapped key too long": func(h *header) { h.slots[0].kind, h.slots[0].wrapped = slotPasskey, make([]byte, maxWrapped+1) },
	} {
		again, err := decodeFile(good)
		if err != nil {
			t.Fatal(err)
		}
		h := again.header
		h.slots[0].params, h.slots[0].wrapped = bytes.Clone(h.slots[0].params), bytes.Clone(h.slots[0].wrapped)
		change(&h)
		w := &writer{b: h.encode()}
		w.raw(img.mac)
		w.blob(img.body)
		_, err = decodeFile(resum(append(w.b, make([]byte, 32)...)))
		if err == nil {
			t.Errorf("%s is taken", name)
		}
		wantErr(t, err, ErrDamaged)
	}
}

func manySlots(n int) []slot {
	out := make([]slot, n)
	for i := range out {
		out[i].kind, out[i].id = slotPasskey, newSlotID()
	}
	return out
}

func costlySlots(s slot) []slot {
	w := &writer{}
	newLock(KDFParams{16, 1 << 20, 4}).encode(w)
	s.params = w.b
	t := s
	t.id = newSlotID()
	return []slot{s, t}
}

func TestSlotsOfLaterKindsAreKept(t *testing.T) {
	v, path := create(t, cheap)
	v.head.slots = append(v.head.slots, slot{id: newSlotID(), kind: slotPasskey, params: []byte("p"), wrapped: []byte("w")})
	put(t, v, "a", planted, bearer())
	w := reopen(t, path, cheap)
	put(t, w, "b", planted, bearer())
	img, err := decodeFile(read(t, path))
	if err != nil || len(img.slots) != 2 || string(img.slots[1].wrapped) != "w" {
		t.Errorf("got %+v, %v", img.slots, err)
	}
}

func TestASlotCannotBeAddedRemovedOrChangedByHand(t *testing.T) {
	path, good := full(t)
	img, err := decodeFile(good)
	if err != nil {
		t.Fatal(err)
	}
	s := img.slots[0]
	own, err := newPassphraseSlot(img.id, s.id, KDFParams{1, 8, 1}, sec("the thief's"), newKey())
	if err != nil {
		t.Fatal(err)
	}
	added, err := newPlainSlot(img.id, newSlotID(), slotRecoveryCode, "", newCode(), newKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, slots := range map[string][]slot{
		"added":      {s, added},
		"put before": {own, s},
		"twice":      {s, s},
	} {
		h := img.header
		h.slots = slots
		w := &writer{b: h.encode()}
		w.raw(img.mac)
		w.blob(img.body)
		if opens(t, path, resum(append(w.b, make([]byte, 32)...))) {
			t.Errorf("a slot %s: it opens", name)
		}
	}
}

func FuzzDecodeFile(f *testing.F) {
	_, good := full(f)
	f.Add(good)
	_, path, _ := every(f)
	f.Add(read(f, path))
	f.Add(good[:100])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, in := range [][]byte{b, resum(append(bytes.Clone(b), make([]byte, 32)...))} {
			img, err := decodeFile(in)
			if err != nil {
				wantErr(t, err, ErrDamaged)
				continue
			}
			if !bytes.Equal(img.header.encode(), img.head) {
				t.Fatal("a header has two spellings")
			}
			if _, err := img.open(secret.New(make([]byte, keyBytes))); err == nil {
				t.Fatal("it opens with another key")
			}
		}
	})
}

func FuzzDecodeContents(f *testing.F) {
	v, _ := create(f, cheap)
	put(f, v, "a", planted, bearer())
	put(f, v, "b", planted, Binding{Kind: KindBasic, Username: "u", Scheme: "http", Host: "::1", Port: 1, Pins: []string{"x", "y"}})
	_, err := v.PutIdentity(f.Context(), "c", withMore(), sec(planted), PutOptions{Label: "l", Expires: time.UnixMilli(1)})
	if err := errorsOf(err, v.PutState("x", []byte("y")), v.SetOperatorPassphrase(sec("operator's own"))); err != nil {
		f.Fatal(err)
	}
	for name, k := range allKinds(f) {
		put(f, v, "d-"+strings.ReplaceAll(name, ", ", "-"), k.text, k.b)
	}
	good, err := v.contents.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(make([]byte, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeContents(b)
		if err != nil {
			wantErr(t, err, ErrDamaged)
			return
		}
		again, err := c.encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("contents have two spellings: %v", err)
		}
	})
}

// FuzzDecodeMore reads what follows a sealed secret: everything that is taken is
// written the same again.
func FuzzDecodeMore(f *testing.F) {
	for _, k := range allKinds(f) {
		it := item{binding: k.b, label: "l", expires: time.UnixMilli(7), source: "bao:secret/data/x#y"}
		w := &writer{}
		it.encodeMore(w)
		f.Add(w.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var it item
		r := &reader{b: b}
		it.decodeMore(r)
		if !r.done() {
			return
		}
		w := &writer{}
		it.encodeMore(w)
		if !bytes.Equal(w.b, b) {
			t.Fatalf("what follows has two spellings: %+v", it)
		}
	})
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
