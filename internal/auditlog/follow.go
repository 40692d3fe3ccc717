package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// followChunk is read from the newest file at once; a longer record is read whole.
const followChunk = 64 << 10

// errReplaced says that a file which was being read is not the one that lies there.
var errReplaced = errors.New("auditlog: the file was removed or replaced while it was read")

// FollowOptions says where to begin and how to wait.
type FollowOptions struct {
	// All begins with the first file instead of the newest one, whose beginning is
	// then taken as given, as Verify does with one file.
	All bool
	// Wait is called when all there is was given out. It returns when there may be
	// more; an error of it ends Follow.
	Wait func(context.Context) error
}

// Follow gives f every event of the record in dir, and goes on with those that are
// written afterwards, over new files, until ctx or an error ends it. old says that
// the event was there when Follow began. What f gets is on the disk: a batch is given
// out when it is whole and the file was synced after it was read. Errors are those of
// Read; a batch that stays unfinished while nothing changes is a *BrokenError.
func Follow(ctx context.Context, dir string, id Identity, o FollowOptions, f func(ev Event, old bool) error) error {
	if id.IsZero() {
		return ErrNoKey
	}
	old := true
	fl := follower{dir: dir}
	fl.o = opener{id: id, f: func(_ uint64, ev Event) error { return f(ev, old) }}
	defer fl.close()
	if err := fl.begin(o.All); err != nil {
		return err
	}
	for {
		if err := fl.catchUp(ctx); err != nil {
			return err
		}
		old = false
		if err := o.Wait(ctx); err != nil {
			return err
		}
	}
}

// follower reads a record that grows. s stands after the last batch given out, which
// ends at off in the file.
type follower struct {
	dir  string
	o    opener
	s    scanner
	name string
	file *os.File
	off  int64
}

func (fl *follower) close() {
	if fl.file != nil {
		fl.file.Close()
	}
	fl.o.r.wipe()
}

func (fl *follower) begin(all bool) error {
	names, err := fl.list()
	if err != nil {
		return err
	}
	if all {
		return fl.open(names[0])
	}
	return fl.open(names[len(names)-1])
}

func (fl *follower) list() ([]string, error) {
	names, err := listSegments(fl.dir)
	switch {
	case errors.Is(err, errNoSegments):
		return nil, ErrAbsent
	case err != nil:
		return nil, fmt.Errorf("auditlog: read %s: %w", fl.dir, err)
	}
	return names, nil
}

// open goes to the beginning of a file.
func (fl *follower) open(name string) error {
	if b := fl.s.checkName(name); b != nil {
		return &BrokenError{Seq: b.seq, File: name, Offset: b.offset, Reason: b.reason}
	}
	f, err := os.OpenFile(filepath.Join(fl.dir, name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("auditlog: read %s: %w", name, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("auditlog: read %s: %w", name, err)
	}
	if fl.file != nil {
		fl.file.Close()
	}
	fl.file, fl.name, fl.off = f, name, 0
	fl.s.inFile, fl.s.epochHere, fl.s.end = 0, false, 0
	return nil
}

// catchUp gives out all that is finished, over all files that are there.
func (fl *follower) catchUp(ctx context.Context) error {
	for {
		names, err := fl.list() // before the file is read: one that has a successor does not grow
		if err != nil {
			return err
		}
		next := slices.IndexFunc(names, func(n string) bool { return n > fl.name })
		if err := fl.drain(ctx, next < 0); err != nil {
			return err
		}
		if next < 0 {
			return fl.inPlace()
		}
		if err := fl.open(names[next]); err != nil {
			return err
		}
	}
}

// inPlace finds out when another file took the name of the one being read.
func (fl *follower) inPlace() error {
	there, err := os.Lstat(filepath.Join(fl.dir, fl.name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (%s)", errReplaced, fl.name)
	}
	if err != nil {
		return fmt.Errorf("auditlog: read %s: %w", fl.name, err)
	}
	mine, err := fl.file.Stat()
	if err == nil && !os.SameFile(there, mine) {
		err = fmt.Errorf("%w (%s)", errReplaced, fl.name)
	}
	return err
}

// drain gives out the finished batches of the present file. A break is looked at
// again as long as the newest file changes: the daemon may be writing a batch.
func (fl *follower) drain(ctx context.Context, newest bool) error {
	var before []byte
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, whole, b, err := fl.look()
		if err != nil {
			return err
		}
		if whole > 0 {
			if err := fl.give(data[:whole]); err != nil {
				return err
			}
			try, before = 0, nil
			continue
		}
		if b == nil {
			return fl.tail(data, newest)
		}
		if !bytes.Equal(before, data) {
			try, before = 0, data
		}
		if !newest || try >= settleTries {
			return &BrokenError{Seq: b.seq, File: fl.name, Offset: b.offset, Reason: b.reason}
		}
		time.Sleep(settlePause)
	}
}

// look reads on from off and says how many bytes are whole batches, and where there
// are none, what is wrong with what follows; nothing where nothing follows.
func (fl *follower) look() (data []byte, whole int, b *broken, err error) {
	for size := followChunk; ; size *= 2 {
		data = make([]byte, size)
		n, err := fl.file.ReadAt(data, fl.off)
		data = data[:n]
		if err != nil && err != io.EOF {
			return nil, 0, nil, fmt.Errorf("auditlog: read %s: %w", fl.name, err)
		}
		whole, more, b := fl.batches(data)
		if whole > 0 || !more || n < size || size > maxFileBytes {
			return data, whole, b, nil
		}
	}
}

// batches scans data with a copy of the scanner and gives the end of the last whole
// batch in it, else why there is none. more says that longer data may hold one.
func (fl *follower) batches(data []byte) (whole int, more bool, b *broken) {
	s := fl.s.snapshot()
	off := 0
	for off < len(data) && data[off] != 0 {
		f, err := parseFrame(data[off:])
		if err != nil {
			return whole, err == errShort, s.breakAt(fl.off+int64(off), err.Error())
		}
		if _, reason, _ := s.accept(&f); reason != "" {
			return whole, false, s.breakAt(fl.off+int64(off), reason)
		}
		if off += f.size(); f.end() {
			whole = off
		}
	}
	switch {
	case off > whole:
		return whole, off == len(data), s.breakAt(fl.off+int64(off), "the last batch is not finished")
	case off == 0 && fl.off == 0:
		return 0, false, s.breakAt(0, "the file does not begin with a SEGMENT record")
	}
	return whole, false, nil
}

// give makes sure that the batches are on the disk and gives out their events.
func (fl *follower) give(data []byte) error {
	if err := syncRead(fl.file); err != nil {
		return fmt.Errorf("auditlog: sync %s: %w", fl.name, err)
	}
	for off := 0; off < len(data); {
		f, err := parseFrame(data[off:])
		if err != nil {
			return err // batches parsed it before
		}
		prev, reason, _ := fl.s.accept(&f)
		if reason != "" {
			return &BrokenError{Seq: f.seq, File: fl.name, Offset: fl.off + int64(off), Reason: reason}
		}
		off += f.size()
		if err := fl.o.visit(&fl.s, &f, prev); err != nil {
			return err
		}
	}
	fl.off += int64(len(data))
	return nil
}

// syncRead syncs a file that was opened for reading. Where the file system does not
// do that, or cannot be written, nothing there is on its way to the disk.
func syncRead(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBADF) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// tail judges what follows the last batch of a file: in the newest one zeros of any
// number, which are looked at a chunk at a time, in any other nothing.
func (fl *follower) tail(data []byte, newest bool) error {
	st, err := fl.file.Stat()
	if err != nil {
		return fmt.Errorf("auditlog: read %s: %w", fl.name, err)
	}
	reason := ""
	switch {
	case st.Size() < fl.off:
		reason = "the file was cut within records that were read"
	case !allZero(data):
		reason = errMagic.Error()
	case len(data) > 0 && !newest:
		reason = "empty space in a file that is not the newest"
	default:
		return nil
	}
	return &BrokenError{Seq: fl.s.next, File: fl.name, Offset: fl.off, Reason: reason}
}
