package sessions

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chatelaine/internal/durable"
)

// Buckets of the store. tokens holds authorised sessions by the digest of their
// token: eight clear bytes of time, then the sealed session. names holds, by
// the keyed digest of a name, the sealed owner.
const (
	bucketTokens = "sessions.tokens"
	bucketNames  = "sessions.names"
	bucketMeta   = "sessions.meta"
)

// Buckets are the names that the store must be opened with.
func Buckets() []string { return []string{bucketTokens, bucketNames, bucketMeta} }

const (
	// earlierKept is how long a token of an earlier run is told
	// SESSION_REVOKED; later it is unknown, SESSION_REQUIRED.
	earlierKept  = 30 * 24 * time.Hour
	tokenKeySize = 32
	timeSize     = 8
)

var metaTokenKey = []byte("token-key")

var errDamaged = errors.New("a stored session name cannot be read")

// nameOwner is whom a name belongs to.
type nameOwner struct {
	Name  string    `json:"name"`
	UID   uint32    `json:"uid"`
	Since time.Time `json:"since"`
	By    string    `json:"by"`
}

// readDisk loads the token key and the digests of earlier runs, and drops those
// that are too old.
func (r *Registry) readDisk() error {
	return r.store.Update(func(tx durable.Tx) error {
		r.tokenKey = tx.Get(bucketMeta, metaTokenKey)
		if len(r.tokenKey) != tokenKeySize {
			r.tokenKey = make([]byte, tokenKeySize)
			_, _ = rand.Read(r.tokenKey) // never fails
			if err := tx.Put(bucketMeta, metaTokenKey, r.tokenKey); err != nil {
				return err
			}
		}
		clear(r.earlier)
		var old [][]byte
		err := tx.ForEach(bucketTokens, func(k, v []byte) error {
			if len(k) != len(tokenDigest{}) || len(v) < timeSize {
				return errDamaged
			}
			at := time.Unix(0, int64(binary.BigEndian.Uint64(v)))
			if r.clock.StoredOver(at, earlierKept) {
				old = append(old, k)
				return nil
			}
			r.earlier[tokenDigest(k)] = true
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range old {
			if err := tx.Delete(bucketTokens, k); err != nil {
				return err
			}
		}
		return nil
	})
}

// readNames unseals who owns which name.
func readNames(store *durable.Store, wrap []byte) (map[string]uint32, error) {
	owners := map[string]uint32{}
	err := store.View(func(tx durable.Tx) error {
		return tx.ForEach(bucketNames, func(k, v []byte) error {
			plain, err := durable.Unseal(wrap, namePlace(k), v)
			if err != nil {
				return fmt.Errorf("%w: %w", errDamaged, err)
			}
			var o nameOwner
			if err := json.Unmarshal(plain, &o); err != nil {
				return errDamaged
			}
			owners[o.Name] = o.UID
			return nil
		})
	})
	return owners, err
}

func namePlace(key []byte) []byte {
	return bytes.Join([][]byte{[]byte("chatelaine/v1 session name\x00"), key}, nil)
}

func tokenPlace(d tokenDigest, at []byte) []byte {
	return bytes.Join([][]byte{[]byte("chatelaine/v1 session\x00"), d[:], at}, nil)
}

// writeLocked puts an authorised session, and with it the owner of its name, on
// the disk.
func (r *Registry) writeLocked(d tokenDigest, s Session) error {
	at := binary.BigEndian.AppendUint64(nil, uint64(s.Authorised.UnixNano()))
	plain, err := json.Marshal(s)
	if err != nil {
		return err
	}
	sealed, err := durable.Seal(r.wrap, tokenPlace(d, at), plain)
	if err != nil {
		return err
	}
	owner, err := json.Marshal(nameOwner{Name: s.Name, UID: s.UID, Since: s.Authorised, By: s.AuthorisedBy})
	if err != nil {
		return err
	}
	nameKey := keyed(r.index, "chatelaine/v1 session name", s.Name)
	sealedOwner, err := durable.Seal(r.wrap, namePlace(nameKey[:]), owner)
	if err != nil {
		return err
	}
	_, known := r.owners[s.Name]
	return r.store.Update(func(tx durable.Tx) error {
		if !known {
			if err := tx.Put(bucketNames, nameKey[:], sealedOwner); err != nil {
				return err
			}
		}
		return tx.Put(bucketTokens, d[:], append(bytes.Clone(at), sealed...))
	})
}
