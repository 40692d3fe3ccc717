package auditlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// segmentFile is what the writer does to the file it appends to. Tests put
// faults in between.
type segmentFile interface {
	WriteAt(b []byte, off int64) (int, error)
	Datasync() error        // data and what is needed to read it back
	Check(size int64) error // still one name, still that size
	Truncate(size int64) error
	Sync() error
	Close() error
}

type osSegment struct{ *os.File }

func (s osSegment) Datasync() error        { return datasync(s.File) }
func (s osSegment) Check(size int64) error { return checkFile(s.File, size) }

// fillChunk is the piece in which a new file is filled with zeros.
const fillChunk = 1 << 20

// makeFile makes a new file of that size. Its blocks are reserved; with fill
// they are also written once, so that later writes change no metadata. What
// cannot be made whole is removed.
func makeFile(path string, size int64, fill bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, fileMode)
	if err != nil {
		return nil, err
	}
	reserved, err := reserve(f, size)
	if err == nil && (fill || !reserved) {
		err = fillZero(f, size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return f, nil
}

func fillZero(f *os.File, size int64) error {
	zeros := make([]byte, min(size, fillChunk))
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-off, int64(len(zeros)))], off); err != nil {
			return err
		}
	}
	return nil
}

// isFull says whether err means that the disk, or the user's share of it, has
// no room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// checkDir refuses a folder that others could reach into.
func checkDir(dir string) error {
	st, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (%s)", ErrAbsent, dir)
	case err != nil:
		return fmt.Errorf("auditlog: %w", err)
	case !st.IsDir():
		return fmt.Errorf("auditlog: %s is not a folder", dir)
	}
	return checkOwned(dir, st, false)
}

// checkOwned refuses what belongs to someone else, what others may open, and
// a file with a second name.
func checkOwned(path string, st fs.FileInfo, file bool) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("auditlog: %s: the owner cannot be told", path)
	}
	switch {
	case int(sys.Uid) != os.Geteuid():
		return fmt.Errorf("auditlog: %s belongs to uid %d, not to this process (uid %d)", path, sys.Uid, os.Geteuid())
	case st.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("auditlog: %s has mode %04o; others must have no access (chmod go-rwx)", path, st.Mode().Perm())
	case file && !st.Mode().IsRegular():
		return fmt.Errorf("auditlog: %s is not a regular file", path)
	case file && sys.Nlink != 1:
		return fmt.Errorf("auditlog: %s has %d names; it must have one", path, sys.Nlink)
	}
	return nil
}

// openOwned opens an existing file of the record for reading and writing.
func openOwned(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("auditlog: %w", err)
	}
	st, err := f.Stat()
	if err == nil {
		err = checkOwned(path, st, true)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
