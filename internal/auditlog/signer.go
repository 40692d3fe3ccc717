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
//	(1) signer.next durable  a crash leaves the old key in force; signer.next is dropped
//	(2) EPOCH record durable a crash leaves signer.next as the key that the record names
//	(3) signer.next renamed over signer
//
// At start the key that the last EPOCH record names is looked for in signer,
// then in signer.next. If neither is it, the log is not opened.

// newSigner makes a key and stores its seed under name.
func newSigner(dir, name string) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed)
	defer clear(seed)
	if err := durable.WriteFile(filepath.Join(dir, name), seed, fileMode); err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// promoteSigner puts signer.next in the place of signer. The old seed is
// overwritten first: once its EPOCH record is durable, nothing needs it.
func promoteSigner(dir string) error {
	path := filepath.Join(dir, signerName)
	if err := eraseFile(path); err != nil {
		return fmt.Errorf("auditlog: erase the old signing key: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, signerNextName), path); err != nil {
		return fmt.Errorf("auditlog: %w", err)
	}
	return durable.SyncDir(dir)
}

// eraseFile overwrites a small file with zeros. That is best effort: a copy
// may stay in the drive's spare cells or in a snapshot.
func eraseFile(path string) error {
	f, err := openOwned(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, ed25519.SeedSize), 0); err != nil {
		return err
	}
	return datasync(f)
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
		return key, os.RemoveAll(filepath.Join(dir, signerNextName))
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
