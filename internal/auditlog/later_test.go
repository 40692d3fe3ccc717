package auditlog

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The kinds that only a later release writes are checked already: these tests
// write them as the format gives them.

// putControl appends one control record as its own batch.
func putControl(t *testing.T, l *Log, k kind, body []byte) uint64 {
	t.Helper()
	seq := l.w.next
	l.w.reset()
	l.w.put(k, flagEnd, body)
	if err := l.w.flush(); err != nil {
		t.Fatal(err)
	}
	return seq
}

// note makes a signed checkpoint.
func note(key ed25519.PrivateKey, origin string, size uint64, root hash) string {
	text := fmt.Sprintf("%s\n%d\n%s\n", origin, size, base64.StdEncoding.EncodeToString(root[:]))
	id := sha256.Sum256(append([]byte(origin+"\n\x01"), key.Public().(ed25519.PublicKey)...))
	sig := append(id[:4:4], ed25519.Sign(key, []byte(text))...)
	return text + "\n— " + origin + " " + base64.StdEncoding.EncodeToString(sig) + "\n"
}

func TestCheckRecord(t *testing.T) {
	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	cases := []struct {
		name string
		body func(w *writer) string
		want string // reason; empty: accepted
	}{
		{"good", func(w *writer) string { return note(w.signer, "chatelaine/x", w.tree.size, w.tree.root()) }, ""},
		{"with a witness", func(w *writer) string {
			n := note(w.signer, "chatelaine/x", w.tree.size, w.tree.root())
			return n + "— witness.example AAAAAA==\n"
		}, ""},
		{"old size", func(w *writer) string { return note(w.signer, "o", w.tree.size-1, w.tree.root()) }, "size"},
		{"other root", func(w *writer) string { return note(w.signer, "o", w.tree.size, hash{1}) }, "root"},
		{"other key", func(w *writer) string { return note(stranger, "o", w.tree.size, w.tree.root()) }, "not signed"},
		{"no signature", func(w *writer) string {
			n := note(w.signer, "o", w.tree.size, w.tree.root())
			return n[:strings.Index(n, "—")]
		}, "not a signed note"},
		{"not a note", func(*writer) string { return "hello" }, "not a signed note"},
		{"size with a zero before", func(w *writer) string {
			return strings.Replace(note(w.signer, "o", w.tree.size, w.tree.root()), "o\n", "o\n0", 1)
		}, "not a signed note"},
	}
	for _, c := range cases {
		dir := newDir(t)
		l := mustOpen(t, smallOptions(dir))
		mustAppend(t, l, testEvent(0))
		seq := putControl(t, l, kindCheck, []byte(c.body(&l.w)))
		l.Close()
		r := Verify(dir)
		switch {
		case c.want == "" && (r.ExitCode() != 0 || r.SignedThrough != seq-1):
			t.Errorf("%s:\n%s", c.name, r.Text())
		case c.want != "" && (r.FirstBroken != seq || !strings.Contains(r.Reason, c.want)):
			t.Errorf("%s:\n%s", c.name, r.Text())
		}
	}
}

func TestCloseRecord(t *testing.T) {
	for _, good := range []bool{true, false} {
		dir := newDir(t)
		l := mustOpen(t, smallOptions(dir))
		mustAppend(t, l, testEvent(0))
		next, err := newSigner(dir, signerNextName)
		if err != nil {
			t.Fatal(err)
		}
		pub := [32]byte(next.Public().(ed25519.PublicKey))
		sig := ed25519.Sign(l.w.signer, closeMessage(l.w.logID, l.w.next, l.w.chain, pub))
		if !good {
			sig[0] ^= 1
		}
		l.w.nextSigner = next
		seq := putControl(t, l, kindClose, append(pub[:], sig...))
		l.Close()
		r := Verify(dir)
		if good && (r.ExitCode() != 0 || r.SignedThrough != seq) || !good && r.FirstBroken != seq {
			t.Errorf("good=%v\n%s", good, r.Text())
		}
		if !good {
			continue
		}
		mustOpen(t, smallOptions(dir)).Close() // goes on with the key that CLOSE names
		if r := Verify(dir); r.ExitCode() != 0 {
			t.Error(r.Text())
		}
	}
}

// A PRUNE record that a signature covers makes a missing front legal; one that
// names another place, or that nothing signs yet, does not.
func TestPruneRecord(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  int // byte of the body to change; -1: none
		signed bool
		want   int
	}{
		{"covers", -1, true, 0},
		{"not signed yet", -1, false, 1},
		{"other sequence", 7, true, 1},
		{"other chain", 20, true, 1},
		{"other signer", 50, true, 1},
	} {
		dir := newDir(t)
		mustOpen(t, smallOptions(dir)).Close()
		l := mustOpen(t, smallOptions(dir))
		names := segments(t, dir)
		s := scanUpTo(t, dir, names[1])
		body := binary.BigEndian.AppendUint64(nil, s.next)
		body = append(append(body, s.chain[:]...), s.signer[:]...)
		body = binary.BigEndian.AppendUint16(body, 1)
		body = binary.BigEndian.AppendUint16(body, 1)
		body = append(body, "key-id-8"...)
		if c.spoil >= 0 {
			body[c.spoil] ^= 1
		}
		seq := putControl(t, l, kindPrune, body)
		l.Close()
		if c.signed {
			mustOpen(t, smallOptions(dir)).Close()
		}
		os.Remove(filepath.Join(dir, names[0]))
		r := Verify(dir)
		if r.ExitCode() != c.want {
			t.Errorf("%s:\n%s", c.name, r.Text())
		}
		if c.want == 0 && !strings.Contains(r.Text(), fmt.Sprintf("first sequence: %d  (1..%d pruned by policy, recorded at %d)\n", s.next, s.next-1, seq)) {
			t.Errorf("%s:\n%s", c.name, r.Text())
		}
	}
}

// A sealed record with a reference to an outside body is accepted and opens.
func TestBodyReference(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	w := &l.w
	ev := testEvent(7)
	ev.complete()
	plain, err := encodeEvent(&ev)
	if err != nil {
		t.Fatal(err)
	}
	ref := make([]byte, bodyRefSize)
	header := make([]byte, headerSize)
	putHeader(header, kindSealed, flagEnd|flagBodyRef, bodyRefSize+sealExtra+len(plain)+5, w.next)
	key := w.keys.next()
	nonce := make([]byte, nonceSize)
	body := append(ref, nonce...)
	padded := append(plain, 0, 0, 0, 0, 0) // padding of a later release
	body = newGCM(&key).Seal(body, nonce, padded, sealAAD(w.logID, w.epoch, header, w.chain))
	w.reset()
	w.put(kindSealed, flagEnd|flagBodyRef, body)
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	l.Close()
	n := 0
	err = Read(dir, testKeys()[0], func(_ uint64, got Event) error {
		n++
		if got.CallID != ev.CallID || got.Body != nil {
			t.Errorf("%+v", got)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d events: %v", n, err)
	}
	if r := Verify(dir); r.ExitCode() != 0 {
		t.Error(r.Text())
	}
}
