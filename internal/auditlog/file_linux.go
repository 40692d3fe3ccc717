package auditlog

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// datasync makes written data durable. The file's size does not change after
// preallocation, so its other metadata may wait.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// checkFile says whether f still has one name and the size that this writer
// gave it. It asks for these two alone: a query of the times makes the next
// sync slower on kernels with multigrain timestamps.
func checkFile(f *os.File, size int64) error {
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_NLINK|unix.STATX_SIZE, &st); err != nil {
		return err
	}
	if st.Nlink != 1 || int64(st.Size) != size {
		return fmt.Errorf("%w: %d names and %d bytes instead of 1 and %d", errAltered, st.Nlink, st.Size, size)
	}
	return nil
}

// reserve takes the disk blocks of the first size bytes, where the file system
// can, and says whether it could. Running out of space shows here and not in
// the middle of a commit.
func reserve(f *os.File, size int64) (bool, error) {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return false, nil
		default:
			return err == nil, err
		}
	}
}

// dropCache makes the next read come from the disk. After a failed sync the
// page cache may show bytes that the disk never took.
func dropCache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// freeBytes gives the space that an ordinary user may still take in dir.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}

var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// bootClock gives the boot and the nanoseconds on its clock, which goes on
// during suspend.
func bootClock() (string, int64) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return "", 0
	}
	return bootID(), ts.Nano()
}

// exchange swaps two names in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
