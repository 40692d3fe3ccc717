package auditlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// maxSpares bounds how many empty segments are kept for answers that were
// promised room: enough for 64 calls with answers of 1 MiB.
const maxSpares = 16

// spareRetry is how long a full disk is left alone before it is tried again.
const spareRetry = time.Second

// lowDiskSegments is how many further segments the disk should hold; below
// that a warning is given.
const lowDiskSegments = 4

// spares are preallocated empty segments. One is always made ahead, so that
// changing files does not wait for the disk, and so that outcomes still find
// room when others have filled the disk.
type spares struct {
	o  *Options
	wg sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	paths   []string
	counter int
	making  bool
	failed  time.Time // last failure to make one
	warn    string
}

// load takes up the spares that an earlier run left. One with content or of
// another size is removed.
func (s *spares) load() error {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return fmt.Errorf("auditlog: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), sparePrefix) {
			continue
		}
		path := filepath.Join(s.o.Dir, e.Name())
		data, err := readFile(path, false)
		if err == nil && int64(len(data)) == s.o.SegmentBytes && allZero(data) && len(s.paths) == 0 {
			s.paths = append(s.paths, path)
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("auditlog: %w", err)
		}
	}
	return nil
}

// count gives the number of spares at hand.
func (s *spares) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.paths)
}

// add makes one more spare and says whether it could.
func (s *spares) add(fill bool) bool {
	s.mu.Lock()
	if len(s.paths) >= maxSpares {
		s.mu.Unlock()
		return false
	}
	s.counter++
	path := filepath.Join(s.o.Dir, fmt.Sprintf("%s%d-%d", sparePrefix, os.Getpid(), s.counter))
	s.mu.Unlock()
	f, err := s.o.makeFile(path+tempSuffix, s.o.SegmentBytes, fill)
	if err == nil {
		f.Close()
		err = os.Rename(path+tempSuffix, path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = time.Now()
		s.warn = "no room for the next segment of the record: " + err.Error()
		return false
	}
	s.paths, s.failed, s.warn = append(s.paths, path), time.Time{}, s.lowDisk()
	return true
}

// grow makes one more spare at once, unless that failed a moment ago.
func (s *spares) grow() bool {
	s.mu.Lock()
	wait := time.Since(s.failed) < spareRetry
	s.mu.Unlock()
	return !wait && s.add(false)
}

// lowDisk gives a warning when the disk will be full soon.
func (s *spares) lowDisk() string {
	free, err := freeBytes(s.o.Dir)
	if err != nil || free >= lowDiskSegments*s.o.SegmentBytes {
		return ""
	}
	return fmt.Sprintf("the disk of the record is nearly full: %d bytes free", free)
}

// keepOne makes a spare in the background when there is none.
func (s *spares) keepOne() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.paths) > 0 || s.making || time.Since(s.failed) < spareRetry {
		return
	}
	s.making = true
	s.wg.Go(func() {
		s.add(true)
		s.mu.Lock()
		s.making = false
		s.mu.Unlock()
	})
}

// take gives an empty segment under tempPath: a spare, or a new one.
func (s *spares) take(tempPath string, fill bool) (*os.File, error) {
	s.mu.Lock()
	var path string
	if n := len(s.paths); n > 0 {
		path, s.paths = s.paths[n-1], s.paths[:n-1]
	}
	s.mu.Unlock()
	if path != "" {
		if f, err := s.useSpare(path, tempPath); err == nil {
			return f, nil
		} // removed or altered by someone: a new one does as well
	}
	return s.o.makeFile(tempPath, s.o.SegmentBytes, fill)
}

// useSpare opens a spare and gives it its new name.
func (s *spares) useSpare(path, tempPath string) (*os.File, error) {
	f, err := openOwned(path)
	if err != nil {
		return nil, err
	}
	if err = checkFile(f, s.o.SegmentBytes); err == nil {
		err = os.Rename(path, tempPath)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// close waits for a spare being made and leaves one for the next run.
func (s *spares) close() {
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.paths {
		if i > 0 {
			os.Remove(p)
		}
	}
	s.paths = nil
}

func (s *spares) warning() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.warn
}
