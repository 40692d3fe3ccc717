package auditlog

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"chatelaine/internal/durable"
)

// The signer is forward-secure: each EPOCH record names the next key and is
// signed with the present one, which is then erased. Order on disk:
//
//	(1) signer.next durable  a crash leaves the old key in force; signer.next is blanked
//	(2) EPOCH record durable a crash leaves signer.next as the key that the record names
//	(3) the two files exchange their names, and signer.next is blanked
//
// At start the key that the last EPOCH record names is looked for in signer,
// then in signer.next. If neither is it, the log is not opened.
//
// Both files always exist and are written in place, so that a full disk does
// not stop the change of keys.

// newSigner makes a key and stores its seed under name.
func newSigner(dir, name string) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed)
	defer clear(seed)
	if err := putSeed(dir, name, seed); err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// putSeed writes a seed in place. A file that is not there is made.
func putSeed(dir, name string, seed []byte) error {
	path := filepath.Join(dir, name)
	f, err := openOwned(path)
	if errors.Is(err, fs.ErrNotExist) {
		return durable.WriteFile(path, seed, fileMode)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.WriteAt(seed, 0); err == nil {
		err = f.Truncate(ed25519.SeedSize)
	}
	if err == nil {
		err = datasync(f)
	}
	if err != nil {
		return fmt.Errorf("auditlog: write %s: %w", name, err)
	}
	return nil
}

// blankNext erases what signer.next holds. That is best effort: a copy may
// stay in the drive's spare cells or in a snapshot.
func blankNext(dir string) error {
	return putSeed(dir, signerNextName, make([]byte, ed25519.SeedSize))
}

// promoteSigner puts signer.next in the place of signer and erases the old
// seed.
func promoteSigner(dir string) error {
	from, to := filepath.Join(dir, signerNextName), filepath.Join(dir, signerName)
	err := exchange(from, to)
	if err != nil { // the file system cannot, or there is no old one
		err = os.Rename(from, to)
	}
	if err == nil {
		err = durable.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("auditlog: change the signing key: %w", err)
	}
	return blankNext(dir)
}

// loadSigner finds the key whose public half is want.
func loadSigner(dir string, want [32]byte) (ed25519.PrivateKey, error) {
	for _, name := range []string{signerName, signerNextName} {
		key, err := readSigner(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if key == nil || [32]byte(key.Public().(ed25519.PublicKey)) != want {
			continue
		}
		if name == signerNextName {
			return key, promoteSigner(dir)
		}
		return key, blankNext(dir)
	}
	return nil, ErrSigner
}

// readSigner reads a seed; a missing or malformed file is no key.
func readSigner(path string) (ed25519.PrivateKey, error) {
	f, err := openOwned(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	seed, err := readOpen(f)
	if err != nil {
		return nil, fmt.Errorf("auditlog: read the signing key: %w", err)
	}
	defer clear(seed)
	if len(seed) != ed25519.SeedSize {
		return nil, nil
	}
	return ed25519.NewKeyFromSeed(seed), nil
}
