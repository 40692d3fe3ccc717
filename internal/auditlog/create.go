package auditlog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"chatelaine/internal/durable"
)

// Create makes a new record in dir for at least two recipients: a random log
// id, the first signing key, and a first segment with an empty first epoch.
// dir is made with mode 0700 when it is not there; its parent must be. It
// refuses when there is a record already. An interrupted Create may be
// repeated.
func Create(dir string, recipients []Recipient) error {
	if err := checkRecipients(recipients); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("auditlog: %w", err)
	}
	if err := checkDir(dir); err != nil {
		return err
	}
	lock, err := lockWriter(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := cleanDir(dir); err != nil {
		return err
	}
	switch _, err := listSegments(dir); {
	case err == nil:
		return fmt.Errorf("%w (%s)", ErrExists, dir)
	case !errors.Is(err, errNoSegments):
		return fmt.Errorf("auditlog: %w", err)
	}
	if err := createFirst(dir, recipients); err != nil {
		return fmt.Errorf("auditlog: create the record: %w", err)
	}
	return durable.SyncDir(filepath.Dir(filepath.Clean(dir)))
}

func createFirst(dir string, recipients []Recipient) error {
	o := Options{Dir: dir, Recipients: recipients, SegmentBytes: minSegmentBytes}.withDefaults()
	o.SegmentBytes = max(o.SegmentBytes, o.headSize())
	signer, err := newSigner(dir, signerName)
	if err != nil {
		return err
	}
	if err := blankNext(dir); err != nil {
		return err
	}
	w := &writer{o: o, signer: signer, next: 1}
	defer w.wipe()
	rand.Read(w.logID[:])
	w.chain = genesis(w.logID)
	path := filepath.Join(dir, segmentName(1)+tempSuffix)
	f, err := makeFile(path, o.SegmentBytes, true)
	if err != nil {
		return err
	}
	if err := w.startSegment(f, path, o.SegmentBytes, nil); err != nil {
		return err
	}
	return w.finish()
}

// lockWriter takes the LOCK file for as long as the returned file is open.
func lockWriter(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, fmt.Errorf("auditlog: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w (%s)", ErrLocked, dir)
	}
	return nil, fmt.Errorf("auditlog: lock %s: %w", path, err)
}

// cleanDir removes segments that never got their name. The lock must be held.
func cleanDir(dir string) error {
	if err := durable.CleanTemp(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("auditlog: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if (strings.HasPrefix(name, segmentPrefix) || strings.HasPrefix(name, sparePrefix)) && strings.HasSuffix(name, tempSuffix) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("auditlog: %w", err)
			}
		}
	}
	return nil
}
