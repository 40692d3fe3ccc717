package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Names inside the record's folder.
const (
	lockName       = "LOCK"
	signerName     = "signer"
	signerNextName = "signer.next"
	segmentPrefix  = "seg-"
	segmentSuffix  = ".alog"
	tempSuffix     = ".tmp"
	tornMark       = ".torn-"
	sparePrefix    = "spare-"

	seqDigits = 20 // the digits of the largest sequence
	dirMode   = 0o700
	fileMode  = 0o600
)

// maxFileBytes is the largest file that is read: far above any segment, and
// low enough that a planted file cannot take the memory.
const maxFileBytes = 1 << 30

// settleTries and settlePause bound how long a reader waits for a batch that a
// running daemon is in the middle of writing.
const (
	settleTries = 20
	settlePause = 10 * time.Millisecond
)

var (
	errNoSegments = errors.New("there is no record here: no file named seg-….alog")
	errNotRegular = errors.New("not a regular file")
	errTooBig     = errors.New("larger than any segment")
)

// segmentName gives the file name of the segment that begins at seq.
func segmentName(seq uint64) string {
	return fmt.Sprintf("%s%0*d%s", segmentPrefix, seqDigits, seq, segmentSuffix)
}

// segmentSeq reads the first sequence from a segment's file name. Any 20 digits
// have the form, also those that no segment can begin with: a file hidden under
// such a name is then met, and named, instead of passed over.
func segmentSeq(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, segmentPrefix)
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, segmentSuffix); !ok || len(digits) != seqDigits {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 10, 64) // out of range: the largest
	return seq, err == nil || errors.Is(err, strconv.ErrRange)
}

// listSegments gives the names of the folder's segments in order. Other files
// are none of the record's.
func listSegments(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, ok := segmentSeq(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, errNoSegments
	}
	slices.Sort(names)
	return names, nil
}

// readFile reads a whole file of bounded size. In the record's folder no
// symbolic link is followed.
func readFile(path string, follow bool) ([]byte, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK // a planted pipe must not hang the reader
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(f)
}

// readOpen reads a file that is already open.
func readOpen(f *os.File) ([]byte, error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", filepath.Base(f.Name()), errNotRegular)
	case st.Size() > maxFileBytes:
		return nil, fmt.Errorf("%s: %w", filepath.Base(f.Name()), errTooBig)
	}
	// With room for the last look at the end, else the buffer would double there.
	b := bytes.NewBuffer(make([]byte, 0, st.Size()+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(f, maxFileBytes+1)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// scanNewest checks the newest file of a folder. A daemon may be writing a
// batch just now: as long as the file changes, a break in it is looked at
// again. s is left as after the last look.
func (s *scanner) scanNewest(path string, follow bool) (data []byte, b *broken, err error) {
	before := s.snapshot()
	for try := 0; ; try++ {
		again, err := readFile(path, follow)
		if err != nil {
			return nil, nil, err
		}
		if try > 0 && (bytes.Equal(again, data) || try > settleTries) {
			return data, b, nil
		}
		data = again
		*s = before.snapshot()
		if b, _ = s.scanFile(data, true, nil); b == nil {
			return data, nil, nil
		}
		time.Sleep(settlePause)
	}
}

// snapshot copies the scanner so that the copy can be scanned on.
func (s *scanner) snapshot() scanner {
	c := *s
	c.tree = s.tree.clone()
	c.recipients = slices.Clone(s.recipients)
	c.cuts = slices.Clone(s.cuts)
	c.prunes = slices.Clone(s.prunes)
	return c
}
