package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyTextForms(t *testing.T) {
	id := testKeys()[0]
	text := id.Reveal()
	if !strings.HasPrefix(text, identityPrefix) || len(text) != len(identityPrefix)+58 {
		t.Fatalf("%d characters", len(text))
	}
	if id.Reveal() != text {
		t.Fatal("a second look shows another key")
	}
	for _, s := range []string{text, " " + text + "\n", strings.ToLower(text), text[:20] + "\n" + text[20:]} {
		back, err := ParseIdentity(s)
		if err != nil || back.Reveal() != text || back.Reveal() != text || back.Recipient().ID() != id.Recipient().ID() {
			t.Errorf("a spelling of the key does not parse: %v", err)
		}
	}
	pub := id.Recipient().String()
	back, err := ParseRecipient(pub)
	if err != nil || back.String() != pub || len(back.ID()) != 16 {
		t.Errorf("the public key: %v", err)
	}
}

// A mistyped private key is refused and never repeated in the error.
func TestKeyRefusals(t *testing.T) {
	text := testKeys()[0].Reveal()
	flip := func(i int) string {
		c := byte('A')
		if text[i] == c {
			c = 'B'
		}
		return text[:i] + string(c) + text[i+1:]
	}
	bad := []string{"", "CHAT-KEY1", text[:len(text)-1], text + "A", "chat-rec1" + text[9:], text[9:], "CHAT-KEY2" + text[9:]}
	for i := len(identityPrefix); i < len(text); i++ {
		bad = append(bad, flip(i))
	}
	for _, s := range bad {
		id, err := ParseIdentity(s)
		if err == nil || !id.IsZero() {
			t.Errorf("%d characters parse", len(s))
			continue
		}
		if strings.Contains(err.Error(), text[12:20]) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
	pub := testKeys()[0].Recipient().String()
	other := "_" // one letter in 64 keys is this one already
	if pub[100] == '_' {
		other = "-"
	}
	for _, s := range []string{"", pub[:len(pub)-1], pub[:100] + other + pub[101:], pub + "A", text} {
		if _, err := ParseRecipient(s); err == nil {
			t.Errorf("a public key of %d characters parses", len(s))
		}
	}
}

// No way of printing or marshalling a value that holds a key shows it.
func TestIdentityNeverPrints(t *testing.T) {
	id := testKeys()[0]
	raw, err := id.key().Bytes()
	if err != nil || allZero(raw) {
		t.Fatalf("the key is gone: %v", err)
	}
	holder := struct {
		Name string
		ID   Identity
		in   *Identity
	}{"x", id, &id}
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%T", "%p", "%t"} {
		out = append(out, fmt.Sprintf(verb, id), fmt.Sprintf(verb, &id), fmt.Sprintf(verb, holder))
	}
	if b, err := json.Marshal(holder); err == nil {
		t.Errorf("a key marshals: %d bytes", len(b))
	}
	for _, s := range out {
		if strings.Contains(s, id.Reveal()[9:30]) || strings.Contains(strings.ToLower(s), fmt.Sprintf("%x", raw[:8])) || bytes.Contains([]byte(s), raw[:8]) {
			t.Errorf("shown: %s", s)
		}
	}
}

// Both recipients open every event; a stranger none; and the folder's own
// files, the signing keys included, open nothing.
func TestWriteBlind(t *testing.T) {
	dir, _ := sampleLog(t, 60)
	for i, id := range testKeys() {
		n := 0
		err := Read(dir, id, func(uint64, Event) error { n++; return nil })
		switch {
		case i < 2 && (n != 60 || err != nil):
			t.Errorf("recipient %d opens %d: %v", i, n, err)
		case i == 2 && (n != 0 || !errors.Is(err, ErrNoKey)):
			t.Errorf("a stranger opens %d: %v", n, err)
		}
	}
	if err := Read(dir, Identity{}, func(uint64, Event) error { return nil }); !errors.Is(err, ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
	for _, name := range segments(t, dir) {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		for _, word := range []string{"call-", "ses-1", "heartbeat", "agent", "event_id"} {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s holds %q in clear", name, word)
			}
		}
	}
}

// What the writer's memory holds opens the rest of its epoch and nothing
// before.
func TestForwardSecrecy(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	for i := range 5 {
		mustAppend(t, l, testEvent(i))
	}
	leak, from := l.w.keys, l.w.next
	for i := range 5 {
		mustAppend(t, l, testEvent(5+i))
	}
	l.Close()
	var s scanner
	opened := 0
	for _, name := range segments(t, dir) {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		s.scanFile(data, false, func(s *scanner, f *frame, prev hash) error {
			if f.kind != kindSealed {
				return nil
			}
			if f.seq < from {
				trial := leak
				for range 20 {
					if _, err := openSealed(&trial, s.logID, s.epoch, prev, f); err == nil {
						t.Errorf("record %d opens with a later state", f.seq)
					}
				}
				return nil
			}
			if _, err := openSealed(&leak, s.logID, s.epoch, prev, f); err != nil {
				t.Errorf("record %d: %v", f.seq, err)
			}
			opened++
			return nil
		})
	}
	if opened != 5 {
		t.Errorf("%d records after the leak open", opened)
	}
}

// A ciphertext cannot be moved, even by one who chains the log anew: the place
// is under the seal.
func TestSealBindsPlace(t *testing.T) {
	var r ratchet
	var logID [32]byte
	prev := hash{1}
	b, _ := appendSealed(nil, &r, logID, 3, 9, flagEnd, prev, []byte(`{}`))
	f, err := parseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	open := func(change func(f *frame, logID *[32]byte, epoch *uint64, prev *hash)) error {
		g, id, epoch, p := f, logID, uint64(3), prev
		g.raw = bytes.Clone(f.raw)
		g.body = g.raw[headerSize:]
		change(&g, &id, &epoch, &p)
		var r ratchet
		_, err := openSealed(&r, id, epoch, p, &g)
		return err
	}
	if err := open(func(*frame, *[32]byte, *uint64, *hash) {}); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(f *frame, logID *[32]byte, epoch *uint64, prev *hash){
		"other log":      func(_ *frame, id *[32]byte, _ *uint64, _ *hash) { id[0] = 1 },
		"other epoch":    func(_ *frame, _ *[32]byte, e *uint64, _ *hash) { *e = 4 },
		"other before":   func(_ *frame, _ *[32]byte, _ *uint64, p *hash) { p[0] = 2 },
		"other sequence": func(f *frame, _ *[32]byte, _ *uint64, _ *hash) { f.raw[15]++ },
		"other flags":    func(f *frame, _ *[32]byte, _ *uint64, _ *hash) { f.raw[3] = 0 },
		"other body":     func(f *frame, _ *[32]byte, _ *uint64, _ *hash) { f.body[20] ^= 1 },
	}
	for name, c := range cases {
		if err := open(c); !errors.Is(err, errOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
