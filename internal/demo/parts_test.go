package demo

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/testkit"
)

// frameOf is a frame of the record's format with a body of zeros.
func frameOf(kind byte, seq uint64, length int) []byte {
	b := make([]byte, frameHead+length+frameChain)
	b[0], b[1], b[2] = frameMagic, 1, kind
	binary.BigEndian.PutUint32(b[4:], uint32(length))
	binary.BigEndian.PutUint64(b[8:], seq)
	return b
}

func TestSpoilChangesOneByteOfTheRecordItNames(t *testing.T) {
	dir := t.TempDir()
	control := frameOf(1, 1, 50)
	segment := append(frameOf(1, 2, 50), frameOf(2, 3, 70)...)
	for seq := uint64(4); seq <= 8; seq++ {
		segment = append(segment, frameOf(kindSealed, seq, 100)...)
	}
	segment = append(segment, make([]byte, 512)...) // room for more
	for name, b := range map[string][]byte{"seg-00000000000000000001.alog": control, "seg-00000000000000000002.alog": segment} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seq, err := spoil(dir)
	if err != nil || seq != 6 {
		t.Fatalf("spoiled %d, %v", seq, err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "seg-00000000000000000002.alog"))
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for i := range after {
		if after[i] != segment[i] {
			at = append(at, i)
		}
	}
	first := bytes.Index(segment, frameOf(kindSealed, 6, 100)[:frameHead])
	if len(at) != 1 || at[0] < first+frameHead || at[0] >= first+frameHead+100 {
		t.Errorf("changed at %v, the record's body begins at %d", at, first+frameHead)
	}
}

func TestSpoilRefusesAnEmptyRecord(t *testing.T) {
	dir := t.TempDir()
	if _, err := spoil(dir); err == nil {
		t.Error("no segment")
	}
	if err := os.WriteFile(filepath.Join(dir, "seg-1.alog"), frameOf(1, 1, 50), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := spoil(dir); err == nil {
		t.Error("no sealed record")
	}
}

func TestTapKeepsWhatTheAgentReceives(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "tap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	daemon, err := net.Listen("unix", filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	go func() {
		for {
			c, err := daemon.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 4)
				if _, err := io.ReadFull(c, b); err == nil {
					_, _ = io.WriteString(c, "answer to "+string(b))
				}
			}()
		}
	}()
	tap, err := newTap(filepath.Join(dir, "a"), filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	for _, question := range []string{"one.", "two."} {
		c, err := net.Dial("unix", filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, question); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || string(got) != "answer to "+question {
			t.Errorf("the agent got %q, %v", got, err)
		}
		_ = c.Close()
	}
	if got := string(tap.bytes()); got != "answer to one.answer to two." {
		t.Errorf("kept %q", got)
	}
	open, err := net.Dial("unix", filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	closed := make(chan struct{})
	go func() { tap.close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(testkit.Patience):
		t.Fatal("an open connection keeps the tap from closing")
	}
}

func TestHomeKeepsSocketPathsShort(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", socketLimit))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	h, err := newHome()
	if err != nil {
		t.Fatal(err)
	}
	defer h.remove()
	if n := len(h.places.OperatorSocket()); n > socketLimit {
		t.Errorf("the path of a socket has %d bytes", n)
	}
	left, err := os.ReadDir(long)
	if err != nil || len(left) != 0 {
		t.Errorf("%v is left of the first try, %v", left, err)
	}
	if st, err := os.Stat(h.dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the home: %v, %v", st.Mode(), err)
	}
}
