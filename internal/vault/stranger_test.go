package vault_test

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// stranger reads a vault with nothing but docs/vault.md: no name, number or
// function of package vault is used below. It takes apart, and panics with what
// is wrong; the test turns that into a failure.
type stranger struct{ b []byte }

func (s *stranger) take(n int) []byte {
	if n > len(s.b) {
		panic("cut short")
	}
	out := s.b[:n]
	s.b = s.b[n:]
	return out
}

func (s *stranger) u8() int      { return int(s.take(1)[0]) }
func (s *stranger) u16() int     { return int(binary.BigEndian.Uint16(s.take(2))) }
func (s *stranger) u32() int     { return int(binary.BigEndian.Uint32(s.take(4))) }
func (s *stranger) u64() uint64  { return binary.BigEndian.Uint64(s.take(8)) }
func (s *stranger) str() string  { return string(s.take(s.u16())) }
func (s *stranger) blob() []byte { return s.take(s.u32()) }

type strangeSlot struct {
	id, params, wrapped []byte
	kind                int
}

type strangeVault struct {
	id, head, mac, body []byte
	generation          uint64
	slots               []strangeSlot
}

func readStrange(file []byte) strangeVault {
	content, sum := file[:len(file)-32], file[len(file)-32:]
	if want := sha256.Sum256(content); !hmac.Equal(want[:], sum) {
		panic("checksum")
	}
	r := &stranger{content}
	if string(r.take(16)) != "chatelaine-vault" || r.u16() != 1 {
		panic("magic or version")
	}
	v := strangeVault{id: r.take(16), generation: r.u64()}
	for range r.u8() {
		v.slots = append(v.slots, strangeSlot{id: r.take(16), kind: r.u8(), params: r.blob(), wrapped: r.blob()})
	}
	v.head = content[:len(content)-len(r.b)]
	v.mac, v.body = r.take(32), r.blob()
	if len(r.b) != 0 {
		panic("something is left over")
	}
	return v
}

func strangeOpen(key, sealed, ad []byte) []byte {
	a, err := chacha20poly1305.NewX(key)
	if err != nil {
		panic(err)
	}
	out, err := a.Open(nil, sealed[:24], sealed[24:], ad)
	if err != nil {
		panic(errors.New("a seal does not hold"))
	}
	return out
}

func strangeKey(from, salt []byte, info string) []byte {
	k, err := hkdf.Key(sha256.New, from, salt, info, 32)
	if err != nil {
		panic(err)
	}
	return k
}

func blobOf(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
func strOf(s string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...)
}

// dataKey opens the first slot of a kind with what a person or a machine has.
func (v strangeVault) dataKey(kind int, have []byte) []byte {
	for _, s := range v.slots {
		if s.kind != kind {
			continue
		}
		p := &stranger{s.params}
		if p.u8() != 1 {
			panic("derivation")
		}
		salt := p.take(16)
		var key []byte
		switch kind {
		case 1:
			passes, kib, threads := p.u32(), p.u32(), p.u8()
			key = argon2.IDKey(have, salt, uint32(passes), uint32(kib), uint8(threads), 32)
		case 2:
			key = strangeKey(have, salt, "chatelaine/v1 slot key credential")
		case 3:
			key = strangeKey(have, salt, "chatelaine/v1 slot key keychain")
		case 5:
			key = strangeKey(have, salt, "chatelaine/v1 slot key recovery")
		}
		ad := append([]byte("chatelaine/v1 slot"), v.id...)
		ad = append(append(ad, s.id...), byte(kind))
		return strangeOpen(key, s.wrapped, append(ad, blobOf(s.params)...))
	}
	panic("no such slot")
}

// place is where a credential or keychain slot keeps its secret.
func (v strangeVault) place(kind int) string {
	for _, s := range v.slots {
		if s.kind == kind {
			p := &stranger{s.params}
			p.take(17)
			return p.str()
		}
	}
	panic("no such slot")
}

// secrets opens everything with the data key and returns each identity's secret
// and each fact.
func (v strangeVault) secrets(dataKey []byte) (secrets, facts map[string]string) {
	m := hmac.New(sha256.New, strangeKey(dataKey, nil, "chatelaine/v1 header"))
	m.Write(v.head)
	if !hmac.Equal(m.Sum(nil), v.mac) {
		panic("header MAC")
	}
	r := &stranger{strangeOpen(strangeKey(dataKey, nil, "chatelaine/v1 body"), v.body, append(append([]byte{}, v.head...), v.mac...))}
	if r.u8() == 1 {
		r.take(1 + 16 + 4 + 4 + 1 + 32)
	}
	secrets, facts = map[string]string{}, map[string]string{}
	for range r.u32() {
		name := r.str()
		before := r.b
		for range 8 {
			r.str()
		}
		r.u16()
		for range r.u8() {
			r.str()
		}
		binding := before[:len(before)-len(r.b)]
		generation := r.take(8)
		r.u64()
		flags, sealed := r.u8(), r.blob()
		var bound []byte
		if flags&8 != 0 {
			facts["more of "+name], bound = r.more()
		}
		if flags&4 != 0 {
			continue
		}
		ad := append([]byte("chatelaine/v1 item"), v.id...)
		ad = append(append(ad, strOf(name)...), binding...)
		ad = append(append(append(ad, generation...), byte(flags&1)), bound...)
		secrets[name] = string(strangeOpen(strangeKey(dataKey, nil, "chatelaine/v1 item"), sealed, ad))
	}
	for range r.u32() {
		name := r.str()
		facts[name] = string(r.blob())
	}
	if len(r.b) != 0 {
		panic("something is left over in the body")
	}
	return secrets, facts
}

// more reads what follows a sealed secret, and returns it as text and the bytes of
// its bound part, none where that says nothing.
func (s *stranger) more() (text string, bound []byte) {
	label, expires := s.str(), s.u64()
	before := s.b
	text = fmt.Sprintf("label %q, expires %d, source %q", label, expires, s.str())
	for range s.u8() {
		text += fmt.Sprintf(", %s=%q", s.str(), s.str())
	}
	switch s.u8() {
	case 0:
	case 1:
		scheme, host, path, ca := s.str(), s.str(), s.str(), s.str()
		text += fmt.Sprintf(", token %s %s %d %s %s", scheme, host, s.u16(), path, ca)
		for range s.u8() {
			text += " " + s.str()
		}
	default:
		panic("token place")
	}
	text += ", user " + s.str()
	for range s.u8() {
		text += ", " + s.str()
	}
	bound = before[:len(before)-len(s.b)]
	if len(strings.Trim(string(bound), "\x00")) == 0 {
		return text, nil
	}
	return text, bound
}

// codeBits reads a recovery code as the page says.
func codeBits(code string) []byte {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	letters := strings.ReplaceAll(code, "-", "")
	bits := ""
	for _, c := range letters {
		bits += fmt.Sprintf("%05b", strings.IndexRune(digits, c))
	}
	out := make([]byte, 20)
	for i := range out {
		fmt.Sscanf(bits[8*i:8*i+8], "%b", &out[i])
	}
	sum := sha256.Sum256(append([]byte("chatelaine/v1 recovery code\x00"), out...))
	check := fmt.Sprintf("%08b%08b%08b", sum[0], sum[1], sum[2])[:20]
	if bits[160:] != check {
		panic("the check letters do not fit")
	}
	return out
}

// TestAStrangerOpensTheVault proves that docs/vault.md is enough to open a vault
// by each kind of slot, and a backup, also after the data key was replaced.
func TestAStrangerOpensTheVault(t *testing.T) {
	defer func() {
		if v := recover(); v != nil {
			t.Fatal("the page does not say how to read this: ", v)
		}
	}()
	const pass, text = "a passphrase of nobody", "secret-of-a-stranger-01"
	credentials, box := t.TempDir(), items{}
	random := []byte("0123456789abcdef0123456789abcdef")
	if err := os.WriteFile(filepath.Join(credentials, "chatelaine-vault"), random, 0o400); err != nil {
		t.Fatal(err)
	}
	o := vault.Options{
		KDF: vault.KDFParams{Time: 1, MemoryKiB: 8, Threads: 1}, DangerouslyWeakKDF: true,
		CredentialsDir: credentials, SlotKeychain: box,
	}
	path := filepath.Join(t.TempDir(), "vault")
	v, err := vault.Create(path, secret.New([]byte(pass)), o)
	if err != nil {
		t.Fatal(err)
	}
	b := vault.Binding{Kind: vault.KindBearer, Scheme: "https", Host: "deploy.example", Port: 443, BasePath: "/api", Pins: []string{"p", "q"}}
	if _, err := v.Put(t.Context(), "bot", b, secret.New([]byte(text)), false); err != nil {
		t.Fatal(err)
	}
	more := putMore(t, v, text)
	if err := errors.Join(v.SetOperatorPassphrase(secret.New([]byte("the operator's own"))), v.PutState("fact", []byte("value"))); err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, n := range []vault.NewSlot{{Kind: vault.SlotRecovery, Label: "safe"}, {Kind: vault.SlotCredential, Credential: "chatelaine-vault"}, {Kind: vault.SlotKeychain}} {
		added, err := v.AddSlot(t.Context(), n, vault.ByPassphrase(secret.New([]byte(pass))))
		if err != nil {
			t.Fatal(err)
		}
		if !added.Code.IsZero() {
			code = added.Code.Reveal()
		}
	}
	all := func(when, code string) {
		t.Helper()
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := readStrange(file)
		for kind, have := range map[int][]byte{1: []byte(pass), 2: random, 3: box[s.place(3)], 5: codeBits(code)} {
			secrets, facts := s.secrets(s.dataKey(kind, have))
			if secrets["bot"] != text || facts["fact"] != "value" {
				t.Errorf("%s, slot kind %d: got %q, %q", when, kind, secrets, facts)
			}
			for name, want := range more {
				if secrets[name] != text || facts["more of "+name] != want {
					t.Errorf("%s: %s: got %q, %q", when, name, secrets[name], facts["more of "+name])
				}
			}
		}
		if s.place(2) != "chatelaine-vault" {
			t.Errorf("%s: credential %q", when, s.place(2))
		}
	}
	all("new", code)
	backup, err := v.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := readStrange(backup)
	if secrets, _ := s.secrets(s.dataKey(5, codeBits(code))); secrets["bot"] != text || len(s.slots) != 2 {
		t.Errorf("the backup holds %q and %d slots", secrets, len(s.slots))
	}
	next, err := v.RotateKey(t.Context(), "", secret.New([]byte(pass)))
	if err != nil {
		t.Fatal(err)
	}
	all("after a rotation", next.Reveal())
}

// putMore puts identities that have more than the first form, and returns what a
// stranger must read of each.
func putMore(t *testing.T, v *vault.Vault, text string) map[string]string {
	t.Helper()
	b := vault.Binding{Kind: vault.KindBearer, Scheme: "https", Host: "deploy.example", Port: 443}
	if _, err := v.PutIdentity(t.Context(), "labelled", b, secret.New([]byte(text)), vault.PutOptions{Label: "the bot", Expires: time.UnixMilli(1893456000000)}); err != nil {
		t.Fatal(err)
	}
	b.Kind = vault.KindOAuth2Client
	b.Params = []vault.Param{{Name: "client_id", Value: "abc"}, {Name: "scopes", Value: "a b"}}
	b.Token = &vault.Place{Scheme: "https", Host: "login.example", Port: 8443, Path: "/token", CADigest: "ca", Pins: []string{"p", "q"}}
	if _, err := v.Put(t.Context(), "machine", b, secret.New([]byte(text)), false); err != nil {
		t.Fatal(err)
	}
	host := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + strings.Repeat("A", 42) + "E"
	b = vault.Binding{
		Kind: vault.KindSSHCertificate, Scheme: "ssh", Host: "build.example", Port: 22, User: "deploy", HostKeys: []string{host}, Token: b.Token,
		Params: []vault.Param{{Name: "principals", Value: "deploy"}, {Name: "valid", Value: "300"}},
	}
	if _, err := v.Put(t.Context(), "pass", b, secret.New([]byte(text)), false); err != nil {
		t.Fatal(err)
	}
	const token = ", token https login.example 8443 /token ca p q, user "
	return map[string]string{
		"labelled": `label "the bot", expires 1893456000000, source "", user `,
		"machine":  `label "", expires 0, source "", client_id="abc", scopes="a b"` + token,
		"pass":     `label "", expires 0, source "", principals="deploy", valid="300"` + token + "deploy, " + host,
	}
}

// items is a keychain of this test.
type items map[string][]byte

func (i items) Name() string { return "items" }
func (i items) Get(_ context.Context, name string) ([]byte, error) {
	b, ok := i[name]
	if !ok {
		return nil, vault.ErrKeychainAbsent
	}
	return append([]byte(nil), b...), nil
}

func (i items) Put(_ context.Context, name string, b []byte) error {
	i[name] = append([]byte(nil), b...)
	return nil
}

func (i items) Delete(_ context.Context, name string) error { delete(i, name); return nil }
