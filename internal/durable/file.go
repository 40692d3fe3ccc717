package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// tempMark sits between the name of the file being replaced and a random
// suffix. The leading dot and the mark together are what CleanTemp looks for,
// so no file of ours may carry both.
const tempMark = ".tmp-"

// tempSuffixBytes is the size of the random suffix: enough that two writers
// never meet on one name.
const tempSuffixBytes = 8

// WriteFile replaces path with data and returns once the new content is on
// disk under that name.
//
// On disk after each step: (1) a temporary file in the same folder, written
// and synced: a crash leaves the old file and a leftover; (2) renamed: a crash
// leaves the old file or the new one, whole; (3) folder synced: the new one
// stays. A leftover of step 1 is removed by CleanTemp at the next start.
//
// perm is set exactly, whatever the umask. A failed write leaves path as it
// was and removes the temporary file.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	dir, base := filepath.Split(path)
	if base == "" {
		return fmt.Errorf("durable: %q names no file", path)
	}
	if dir == "" {
		dir = "."
	}
	var suffix [tempSuffixBytes]byte
	rand.Read(suffix[:])
	temp := filepath.Join(dir, "."+base+tempMark+hex.EncodeToString(suffix[:]))
	if err := writeTemp(temp, data, perm); err != nil {
		os.Remove(temp)
		return fmt.Errorf("durable: write %s: %w", path, err)
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return fmt.Errorf("durable: replace %s: %w", path, err)
	}
	return SyncDir(dir)
}

// writeTemp makes temp, which must not exist, and syncs it.
func writeTemp(temp string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// CleanTemp removes what an interrupted WriteFile left in dir. Call it at
// start, under the folder's lock: it would also remove the temporary file of a
// save that is still running.
func CleanTemp(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("durable: clean %s: %w", dir, err)
	}
	for _, e := range entries {
		if !isTemp(e.Name()) || e.IsDir() {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("durable: clean %s: %w", dir, err)
		}
	}
	return nil
}

// isTemp says whether name is one that WriteFile makes.
func isTemp(name string) bool {
	i := strings.LastIndex(name, tempMark)
	if i < 2 || name[0] != '.' {
		return false
	}
	suffix, err := hex.DecodeString(name[i+len(tempMark):])
	return err == nil && len(suffix) == tempSuffixBytes
}

// SyncDir makes the names in dir durable: what was created, renamed or removed
// there before the call stays so after a crash.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("durable: sync folder %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("durable: sync folder %s: %w", dir, err)
	}
	return nil
}
