package vault

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestOldEntriesAreWrittenAsBefore holds an entry of the first form to the bytes
// that every version wrote, and its associated data too.
func TestOldEntriesAreWrittenAsBefore(t *testing.T) {
	it := item{name: "a", binding: bearer(), generation: 7, updated: time.UnixMilli(1), short: true, sealed: []byte{0xfe}}
	it.binding.Pins = []string{"p"}
	const binding = "0006626561726572" + "0000" + "0000" + "0000" + "00056874747073" + "000e6465706c6f792e6578616d706c65" + "00042f617069" + "0000" + "01bb" + "01" + "000170"
	w := &writer{}
	it.encode(w)
	if got, want := hex.EncodeToString(w.b), "000161"+binding+"0000000000000007"+"0000000000000001"+"01"+"00000001fe"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var id [idBytes]byte
	ad := it.ad(id)
	if want := hex.EncodeToString([]byte("chatelaine/v1 item")) + strings.Repeat("00", 16) + "000161" + binding + "0000000000000007" + "01"; hex.EncodeToString(ad) != want {
		t.Errorf("got  %x\nwant %s", ad, want)
	}
	it.label, it.expires = "x", time.UnixMilli(9)
	if !bytes.Equal(it.ad(id), ad) {
		t.Error("label and expiry are in the associated data: they could not be changed alone")
	}
	it.source = "bao:x"
	if bytes.Equal(it.ad(id), ad) {
		t.Error("the source is not in the associated data")
	}
}

// TestAFileOfBeforeOpens opens a vault that was written when there were three
// kinds and nothing followed a secret. Its contents are written as they were.
func TestAFileOfBeforeOpens(t *testing.T) {
	path := newPath(t)
	write(t, path, read(t, filepath.Join("testdata", "vault-of-before")))
	v := reopen(t, path, cheap)
	o, err := v.current()
	if err != nil {
		t.Fatal(err)
	}
	img, err := decodeFile(read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	key, err := derive(o.dataKey, infoBody)
	if err != nil {
		t.Fatal(err)
	}
	before, err := unseal(key, img.body, join(img.head, img.mac))
	if err != nil {
		t.Fatal(err)
	}
	after, err := o.contents.encode()
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("its contents are written in another way, %v", err)
	}
	for _, i := range v.List() {
		l, err := v.Lease(t.Context(), i.Name)
		if err != nil {
			t.Fatal(err)
		}
		h := headers{}
		if err := l.Attach(h, madeFor(i.Binding)); err != nil || len(h) != 1 || i.Label != "" || !i.Expires.IsZero() {
			t.Errorf("%s: got %+v, %v", i.Name, i, err)
		}
		l.Close()
	}
	if fact, ok, err := v.GetState("fact"); string(fact) != "value" || !ok || err != nil || len(v.List()) != 3 {
		t.Errorf("got %q, %d identities, %v", fact, len(v.List()), err)
	}
}

// TestWhatFollowsHasOneSpelling alters an entry in every way that says nothing
// else, or too much.
func TestWhatFollowsHasOneSpelling(t *testing.T) {
	entry := func(it item) []byte {
		w := &writer{}
		w.u8(0)
		w.u32(1)
		it.encode(w)
		w.u32(0)
		return w.b
	}
	good := item{name: "a", binding: withMore(), generation: 1, updated: time.UnixMilli(1), sealed: []byte("x"), label: "l", expires: time.UnixMilli(3)}
	if _, err := decodeContents(entry(good)); err != nil {
		t.Fatal(err)
	}
	plain := good
	plain.binding, plain.label, plain.expires = bearer(), "", time.Time{}
	empty := entry(plain)
	at := len(empty) - 4 - 5 - 1 // the flags stand before the blob of one byte
	empty[at] |= flagMore
	w := &writer{b: bytes.Clone(empty[:len(empty)-4])}
	item{}.encodeMore(w)
	w.u32(0)
	for name, b := range map[string][]byte{
		"a flag and nothing more":  empty,
		"a flag and only zeros":    w.b,
		"cut":                      entry(good)[:len(entry(good))-5],
		"another flag":             func() []byte { b := entry(plain); b[at] |= 16; return b }(),
		"no flag and more":         func() []byte { b := entry(good); b[bytes.LastIndex(b, []byte("\x00\x00\x00\x01x"))-1] = 0; return b }(),
		"a label with a line":      entry(with(good, func(it *item) { it.label = "a\nb" })),
		"a label that turns round": entry(with(good, func(it *item) { it.label = "a\u202eb" })),
		"a label of 65 bytes":      entry(with(good, func(it *item) { it.label = strings.Repeat("x", 65) })),
		"a label that is no text":  entry(with(good, func(it *item) { it.label = "\xff" })),
		"a source without a name":  entry(with(good, func(it *item) { it.source = "x" })),
		"a far expiry":             entry(with(good, func(it *item) { it.expires = time.UnixMilli(maxTime + 1) })),
		"an expiry before 1970":    entry(with(good, func(it *item) { it.expires = time.UnixMilli(-1) })),
		"params out of order":      entry(with(good, func(it *item) { it.binding.Params = []Param{{"scopes", "a"}, {"client_id", "b"}} })),
		"pins out of order":        entry(with(good, func(it *item) { it.binding.Token.Pins = []string{"q", "p"} })),
		"a host in capitals":       entry(with(good, func(it *item) { it.binding.Token.Host = "LOGIN.example" })),
		"no token place":           entry(with(good, func(it *item) { it.binding.Token = nil })),
		"a user":                   entry(with(good, func(it *item) { it.binding.User = "root" })),
	} {
		_, err := decodeContents(b)
		if err == nil {
			t.Errorf("%s: it is taken", name)
		}
		wantErr(t, err, ErrDamaged)
	}
}

func with(it item, change func(it *item)) item {
	it.binding = it.binding.clone()
	change(&it)
	return it
}

func TestWhatIsSaidOfASecretIsKept(t *testing.T) {
	v, path := create(t, cheap)
	end := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	if _, err := v.PutIdentity(t.Context(), "a", bearer(), sec(planted), PutOptions{Label: "Bot of the größten Büro", Expires: end}); err != nil {
		t.Fatal(err)
	}
	v = reopen(t, path, cheap)
	to := bearer()
	to.Host = "new.example"
	if err := v.Rebind(t.Context(), "a", to); err != nil {
		t.Fatal(err)
	}
	if _, err := v.RotateKey(t.Context(), "", sec(goodPass)); err != nil {
		t.Fatal(err)
	}
	i := reopen(t, path, cheap).List()[0]
	if i.Label != "Bot of the größten Büro" || !i.Expires.Equal(end) || i.Source != "" || i.Binding.Host != "new.example" {
		t.Errorf("got %+v", i)
	}
	put(t, v, "a", planted, bearer())
	if i := v.List()[0]; i.Label != "" || !i.Expires.IsZero() {
		t.Errorf("a new secret keeps what was said of the old: %+v", i)
	}
	for name, o := range map[string]PutOptions{
		"a long label":           {Label: strings.Repeat("x", 65)},
		"a label with a line":    {Label: "a\nb"},
		"an expiry before 1970":  {Expires: time.UnixMilli(-5)},
		"an expiry far off":      {Expires: time.UnixMilli(maxTime + 1)},
		"a secret and a source":  {Source: "bao:secret/x"},
		"a source without colon": {Source: "bao"},
	} {
		_, err := v.PutIdentity(t.Context(), "a", bearer(), sec(planted), o)
		if err == nil {
			t.Errorf("%s: it is taken", name)
		}
		wantErr(t, err, ErrBadIdentity)
	}
}

// TestNoFlippedBitMovesASecret flips each bit of an entry whose body somebody
// could seal again: it says the same, is refused, or its secret does not open.
func TestNoFlippedBitMovesASecret(t *testing.T) {
	v, _ := create(t, cheap)
	if _, err := v.PutIdentity(t.Context(), "b", withMore(), sec(planted), PutOptions{Label: "bot", Expires: time.UnixMilli(1893456000000)}); err != nil {
		t.Fatal(err)
	}
	o, err := v.current()
	if err != nil {
		t.Fatal(err)
	}
	good, err := o.contents.encode()
	if err != nil {
		t.Fatal(err)
	}
	free := 0 // bits of what is not bound: time, suspension, label, expiry
	for i := range len(good) * 8 {
		b := bytes.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		c, err := decodeContents(b)
		if err != nil {
			continue
		}
		for _, it := range c.items {
			s, err := v.unsealItem(t.Context(), o, it)
			if err != nil {
				continue
			}
			s.Wipe()
			free++
			was := o.contents.items["b"]
			was.label, was.expires, was.updated, was.suspended = it.label, it.expires, it.updated, it.suspended
			if !reflect.DeepEqual(was, it) {
				t.Errorf("bit %d of byte %d flipped: it opens as %+v", i%8, i/8, it)
			}
		}
	}
	if free == 0 || free > 8*(8+8+3)+1 {
		t.Errorf("%d bits are free", free)
	}
}

func TestABackupKeepsWhatIsSaid(t *testing.T) {
	from, _ := create(t, cheap)
	end := time.UnixMilli(1893456000000)
	if _, err := from.PutIdentity(t.Context(), "machine", withMore(), sec(planted), PutOptions{Label: "bot", Expires: end}); err != nil {
		t.Fatal(err)
	}
	b, err := from.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to, path := create(t, cheap)
	if _, err := to.Import(t.Context(), b, ByPassphrase(sec(goodPass)), false); err != nil {
		t.Fatal(err)
	}
	i := reopen(t, path, cheap).List()[0]
	if i.Label != "bot" || !i.Expires.Equal(end) || !reflect.DeepEqual(i.Binding, withMore()) {
		t.Errorf("got %+v", i)
	}
}
