//go:build unix && !linux

package auditlog

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// datasync makes written data durable. File.Sync asks macOS for F_FULLFSYNC,
// without which the drive may keep the data in its own memory.
func datasync(f *os.File) error { return f.Sync() }

// checkFile says whether f still has one name and the size that this writer
// gave it.
func checkFile(f *os.File, size int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Nlink != 1 || st.Size != size {
		return fmt.Errorf("%w: %d names and %d bytes instead of 1 and %d", errAltered, st.Nlink, st.Size, size)
	}
	return nil
}

// reserve leaves it to the zero fill that follows.
func reserve(*os.File, int64) (bool, error) { return false, nil }

// dropCache has no portable form; the scan reads what the system shows.
func dropCache(*os.File) {}

// freeBytes gives the space that an ordinary user may still take in dir.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

var processStart = time.Now()

var bootID = sync.OnceValue(func() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d", id, os.Getpid())
})

// bootClock counts from the start of the process and names the process with
// the boot, since there is no portable clock that goes on during suspend.
func bootClock() (string, int64) { return bootID(), int64(time.Since(processStart)) }

// exchange has no portable form; the caller renames instead.
func exchange(_, _ string) error { return errors.ErrUnsupported }
