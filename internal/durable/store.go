package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	// storeMode keeps the file to the daemon's own user.
	storeMode fs.FileMode = 0o600

	// defaultStoreWait is how long OpenStore waits for the file's lock when
	// the caller gives no time-out. A second daemon should hear quickly that
	// it is the second; a dying one needs a moment to let go.
	defaultStoreWait = time.Second

	// groupMax bounds how many writes share one sync. It keeps one commit
	// short when a burst arrives.
	groupMax = 256

	// newSuffix names a store that is still being made.
	newSuffix = ".new"
)

// Errors of a store. They are wrapped with the path and the cause.
var (
	// ErrStoreHeld says that another process has the file open.
	ErrStoreHeld = errors.New("the file is held by another process")
	// ErrStoreDamaged says that the file is not a store or its pages do not
	// fit together. The way out is a copy from a backup.
	ErrStoreDamaged = errors.New("the file is damaged")
	// ErrStoreClosed says that the store was closed.
	ErrStoreClosed = errors.New("the store is closed")
	// ErrStoreFull says that there was no room for a write. Nothing of it
	// was kept; a later write may work.
	ErrStoreFull = errors.New("no room left for the store")
	// ErrStoreBroken says that an earlier write or sync failed in a way after
	// which the kernel no longer promises what is on the disk. The store
	// refuses every write until it is opened again.
	ErrStoreBroken = errors.New("the store refuses writes after a failed sync; restart to read what the disk really holds")
	errNoBucket    = errors.New("no such bucket")
)

// Tx is one transaction. Slices that it returns are copies.
type Tx interface {
	// Get returns the value of key, nil when there is none.
	Get(bucket string, key []byte) []byte
	// Put writes a value. It fails in a View.
	Put(bucket string, key, value []byte) error
	// Delete removes a key; a key that is not there is no error.
	Delete(bucket string, key []byte) error
	// ForEach walks a bucket in the order of its keys. f must not write.
	ForEach(bucket string, f func(k, v []byte) error) error
	// Prefix walks the keys that begin with prefix, in order. f must not write.
	Prefix(bucket string, prefix []byte, f func(k, v []byte) error) error
}

// Store is a crash-safe key/value file with named buckets. Every write is on
// the disk before it returns; writes that arrive together share one sync. It
// is safe for concurrent use.
type Store struct {
	db    *bolt.DB
	file  *os.File // db's, to let its lock go when db cannot
	path  string
	queue chan *write
	quit  chan struct{} // closed by Close
	done  chan struct{} // closed when the writer has ended
	once  sync.Once

	mu     sync.Mutex // guards broken
	broken error
}

type write struct {
	f      func(Tx) error
	result chan error
}

// OpenStore opens the store at path, making it and its buckets where they do
// not exist. timeout bounds the wait for another process that holds the file;
// zero means one second. The errors are ErrStoreHeld, ErrStoreDamaged or the
// cause, with the path.
func OpenStore(path string, timeout time.Duration, buckets ...string) (*Store, error) {
	if timeout <= 0 {
		timeout = defaultStoreWait
	}
	if err := createStore(path, timeout); err != nil {
		return nil, err
	}
	db, file, err := openBolt(path, timeout)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, file: file, path: path, queue: make(chan *write), quit: make(chan struct{}), done: make(chan struct{})}
	if err := s.prepare(buckets); err != nil {
		_ = s.closeFile()
		return nil, err
	}
	go s.writer()
	return s, nil
}

// createStore makes a new store under another name first, so that a crash
// while its first pages are written cannot leave half a store at path.
func createStore(path string, timeout time.Duration) error {
	info, err := os.Stat(path)
	if err == nil {
		if info.Size() == 0 {
			return fmt.Errorf("%s: %w: it is empty", path, ErrStoreDamaged)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open the store: %w", err)
	}
	fresh := path + newSuffix
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a store that was never finished: %w", err)
	}
	db, _, err := openBolt(fresh, timeout)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	return nil
}

// openBolt opens the file. bbolt asserts while it reads a damaged one; its
// descriptor, and with it the lock, is let go then too.
func openBolt(path string, timeout time.Duration) (db *bolt.DB, file *os.File, err error) {
	defer func() {
		if err != nil && file != nil {
			letGo(file)
		}
	}()
	defer guard(path, &err)()
	db, err = bolt.Open(path, storeMode, &bolt.Options{
		Timeout: timeout, NoStatistics: true, FreelistType: bolt.FreelistMapType,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, perm)
			file = f
			return f, err
		},
	})
	if err != nil {
		return nil, file, storeError(path, err)
	}
	return db, file, nil
}

// prepare makes the buckets and reads every page once, so that damage is found
// at the start and not in the middle of a call.
func (s *Store) prepare(buckets []string) (err error) {
	defer guard(s.path, &err)()
	err = s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
	if err != nil {
		return storeError(s.path, err)
	}
	return nil
}

// Path returns where the store rests.
func (s *Store) Path() string { return s.path }

// Put writes one value; it is on the disk when Put returns nil.
func (s *Store) Put(bucket string, key, value []byte) error {
	return s.Update(func(tx Tx) error { return tx.Put(bucket, key, value) })
}

// Update runs f in a transaction that is on the disk, whole, when Update
// returns nil; on an error nothing of it is kept. It may share the transaction
// with other writers, and f runs again when one of those fails, so f must have
// no effect but through tx.
func (s *Store) Update(f func(tx Tx) error) error {
	w := &write{f: f, result: make(chan error, 1)}
	select {
	case s.queue <- w:
		return <-w.result
	case <-s.quit:
		return fmt.Errorf("%s: %w", s.path, ErrStoreClosed)
	}
}

// View runs f over one unchanging state of the store.
func (s *Store) View(f func(tx Tx) error) (err error) {
	defer guard(s.path, &err)()
	var inner error
	err = s.db.View(func(tx *bolt.Tx) error {
		inner = f(boltTx{tx})
		return nil
	})
	if inner != nil {
		return inner
	}
	if err != nil {
		return storeError(s.path, err)
	}
	return nil
}

// Close waits for the writes under way and closes the file. It may be called
// more than once.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		close(s.quit)
		<-s.done
		err = s.closeFile()
	})
	if err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}

// closeFile closes the file whatever becomes of bbolt, which may assert over a
// damaged page even while it closes.
func (s *Store) closeFile() (err error) {
	defer func() { letGo(s.file) }()
	defer guard(s.path, &err)()
	return s.db.Close()
}

// letGo unlocks and closes a file that bbolt may have closed already. The lock
// is taken off by name: pages that bbolt left mapped would keep it.
func letGo(file *os.File) {
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) })
	}
	_ = file.Close()
}
