package auditlog

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountTmpfs mounts a file system of that size, and says whether it may.
func mountTmpfs(t *testing.T, dir string, size int) bool {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Logf("mount: %v", err)
		return false
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return true
}

// pause lets the writer's own pause after a full disk pass.
func pause() { time.Sleep(20 * time.Millisecond) }
