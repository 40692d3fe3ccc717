package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func init() {
	children["full disk"] = func(args []string) error {
		return onMount(args[0], func(path string, v *Vault) error {
			filler := filepath.Join(filepath.Dir(path), "filler")
			if err := fill(filler); err != nil {
				return err
			}
			if err := failedSave(path, v, syscall.ENOSPC); err != nil {
				return err
			}
			return os.Remove(filler)
		})
	}
	children["read-only folder"] = func(args []string) error {
		return onMount(args[0], func(path string, v *Vault) error {
			dir := filepath.Dir(path)
			if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
				return fmt.Errorf("remount: %w", err)
			}
			if err := failedSave(path, v, syscall.EROFS); err != nil {
				return err
			}
			return syscall.Mount("", dir, "", syscall.MS_REMOUNT, "")
		})
	}
	children["file too large"] = func(args []string) error {
		return withVault(filepath.Join(args[0], "vault"), func(path string, v *Vault) error {
			var old syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
				return err
			}
			limit := syscall.Rlimit{Cur: 100, Max: old.Max}
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				return err
			}
			if err := failedSave(path, v, syscall.EFBIG); err != nil {
				return err
			}
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)
		})
	}
}

// errNoMounts is what a child ends with where this machine lets it mount nothing.
var errNoMounts = errors.New("no right to mount")

// onMount runs f with a vault on a small file system of its own.
func onMount(dir string, f func(path string, v *Vault) error) error {
	// Without this a machine with shared mounts would see them.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%w: private mounts: %w", errNoMounts, err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf("%w: tmpfs: %w", errNoMounts, err)
	}
	return withVault(filepath.Join(dir, "vault"), f)
}

// withVault runs f, after which saving must work again.
func withVault(path string, f func(path string, v *Vault) error) error {
	v, err := Create(path, sec(goodPass), cheap)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := v.Put(ctx, "a", bearer(), sec(planted), false); err != nil {
		return err
	}
	if err := f(path, v); err != nil {
		return err
	}
	if _, err := v.Put(ctx, "b", bearer(), sec(planted), false); err != nil {
		return fmt.Errorf("afterwards: %w", err)
	}
	w, err := Open(path, cheap)
	if err != nil {
		return err
	}
	if err := w.Unlock(ctx, sec(goodPass)); err != nil {
		return err
	}
	if len(w.List()) != 2 {
		return errors.New("afterwards: an identity is missing")
	}
	return nil
}

// failedSave makes a save that must fail with want, change nothing on disk or
// in memory, leave nothing behind, and keep the vault usable.
func failedSave(path string, v *Vault, want error) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	_, err = v.Put(ctx, "b", bearer(), sec(planted), false)
	if !errors.Is(err, want) {
		return fmt.Errorf("got %v, want %w", err, want)
	}
	if _, err = v.AddSlot(ctx, NewSlot{Kind: SlotRecovery}, ByPassphrase(sec(goodPass))); !errors.Is(err, want) {
		return fmt.Errorf("a new slot: got %v, want %w", err, want)
	}
	if _, err = v.RotateKey(ctx, "", sec(goodPass)); !errors.Is(err, want) {
		return fmt.Errorf("a new data key: got %v, want %w", err, want)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		return fmt.Errorf("the file changed: %w", err)
	}
	if n := len(v.List()); n != 1 {
		return fmt.Errorf("%d identities are shown", n)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.tmp-*"))
	if err != nil || len(left) != 0 {
		return fmt.Errorf("leftovers: %v, %w", left, err)
	}
	l, err := v.Lease(ctx, "a")
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Attach(headers{}, madeFor(bearer()))
}

// fill writes until the file system is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 1024)); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestFailedSaves runs each case in a process of its own. Those of a file system
// get a mount namespace, as the root of a user namespace where the user is not
// root already. Where the machine allows neither, the limit on a file's size
// alone makes a save fail, and the log says so.
func TestFailedSaves(t *testing.T) {
	for _, name := range []string{"full disk", "read-only folder"} {
		cmd := child(t, name, os.Environ(), t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if uid := os.Getuid(); uid != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		switch {
		case cmd.Process == nil && err != nil, bytes.Contains(out, []byte(errNoMounts.Error())):
			t.Logf("%s is not tried: this machine lets nobody here mount anything (%v %s)", name, err, out)
		case err != nil:
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if out, err := child(t, "file too large", os.Environ(), t.TempDir()).CombinedOutput(); err != nil {
		t.Errorf("file too large: %v: %s", err, out)
	}
}
