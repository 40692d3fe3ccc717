package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// testdata/first-release was written once by the first release: several
// epochs, an answer with its raw body, a cut with its RECOVER record, and the
// empty space of a daemon that was killed. It is never written again: every
// later release must verify it and open it unchanged.
const sampleDir = "testdata/first-release"

// sampleKeys are the sample's recipients: keys of fixed bytes that protect
// nothing.
func sampleKeys(t *testing.T) (out [2]Identity) {
	t.Helper()
	for i := range out {
		raw := bytes.Repeat([]byte{byte(i + 1)}, 32)
		id, err := ParseIdentity(identityPrefix + identityEncoding.EncodeToString(withChecksum(identityPrefix, raw)))
		if err != nil {
			t.Fatal(err)
		}
		out[i] = id
	}
	return out
}

func TestFirstReleaseVerifies(t *testing.T) {
	want, err := os.ReadFile("testdata/first-release.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := Verify(sampleDir)
	if r.ExitCode() != 0 || r.Text() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", r.Text(), want)
	}
	if len(r.Cuts) != 1 {
		t.Errorf("cuts: %+v", r.Cuts)
	}
}

func TestFirstReleaseOpens(t *testing.T) {
	b, err := os.ReadFile("testdata/first-release.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range sampleKeys(t) {
		var evs []Event
		if err := Read(sampleDir, id, func(_ uint64, ev Event) error { evs = append(evs, ev); return nil }); err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(evs, "", "\t")
		if err != nil || !bytes.Equal(append(got, '\n'), b) {
			t.Errorf("the events differ: %v\n%s", err, got)
		}
	}
}

// The sample has no signing key: it can be read, and not appended to.
func TestFirstReleaseHasNoSigner(t *testing.T) {
	c := copyDir(t, sampleDir)
	if err := os.WriteFile(filepath.Join(c, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(smallOptions(c)); !errors.Is(err, ErrSigner) {
		t.Errorf("a record without its signing key: %v", err)
	}
}
