package auditlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFolderRefusals: what others could reach into, or what is not the
// record's own, is not opened.
func TestFolderRefusals(t *testing.T) {
	seg := segmentName(1)
	cases := []struct {
		name string
		do   func(dir string) error
		want string
	}{
		{"folder open to others", func(d string) error { return os.Chmod(d, 0o750) }, "chmod go-rwx"},
		{"segment open to others", func(d string) error { return os.Chmod(filepath.Join(d, seg), 0o644) }, "chmod go-rwx"},
		{"signer open to others", func(d string) error { return os.Chmod(filepath.Join(d, signerName), 0o640) }, "chmod go-rwx"},
		{"segment with two names", func(d string) error { return os.Link(filepath.Join(d, seg), filepath.Join(d, "x")) }, "2 names"},
		{"segment is a link", func(d string) error {
			if err := os.Rename(filepath.Join(d, seg), filepath.Join(d, "x")); err != nil {
				return err
			}
			return os.Symlink("x", filepath.Join(d, seg))
		}, "symbolic links"},
		{"lock is a link", func(d string) error {
			os.Remove(filepath.Join(d, lockName))
			return os.Symlink(signerName, filepath.Join(d, lockName))
		}, "symbolic links"},
		{"no segment", func(d string) error { return os.Remove(filepath.Join(d, seg)) }, "no record here"},
		{"no folder", os.RemoveAll, "no record here"},
	}
	for _, c := range cases {
		dir := newDir(t)
		if err := c.do(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(smallOptions(dir)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOptionRefusals(t *testing.T) {
	dir := newDir(t)
	rs := testRecipients()
	cases := []struct {
		name string
		o    Options
		want string
	}{
		{"no recipients", Options{Dir: dir}, "at least 2 recipients"},
		{"one recipient", Options{Dir: dir, Recipients: rs[:1]}, "at least 2 recipients"},
		{"twice the same", Options{Dir: dir, Recipients: []Recipient{rs[0], rs[0]}}, "named twice"},
		{"an empty one", Options{Dir: dir, Recipients: []Recipient{rs[0], {}}}, "recipient 2 is empty"},
		{"tiny segment", Options{Dir: dir, Recipients: rs, SegmentBytes: 100}, "a segment of 100 bytes"},
		{"long epoch", Options{Dir: dir, Recipients: rs, EpochRecords: 5000}, "an epoch of 5000 records"},
		{"old epoch", Options{Dir: dir, Recipients: rs, EpochAge: time.Hour}, "15m0s at most"},
	}
	for _, c := range cases {
		if _, err := Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := Create(filepath.Join(t.TempDir(), "x"), rs[:1]); err == nil {
		t.Error("Create with one recipient")
	}
}

// A folder without a record is told apart from one that cannot be read.
func TestReadWithoutRecord(t *testing.T) {
	id, err := GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, Event) error { t.Error("an event"); return nil }
	if err := Read(t.TempDir(), id, none); !errors.Is(err, ErrAbsent) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := Read(filepath.Join(t.TempDir(), "no"), id, none); errors.Is(err, ErrAbsent) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
