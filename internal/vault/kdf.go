package vault

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"chatelaine/internal/secret"
)

// KDFParams is the cost of one argon2id run (RFC 9106). The zero value asks for
// the floor, made slower until one run takes about half a second.
type KDFParams struct {
	Time      uint32 // passes
	MemoryKiB uint32
	Threads   uint8
}

// floorKDF is the least that a vault is created with: the second recommended
// setting of RFC 9106 section 4.
var floorKDF = KDFParams{Time: 3, MemoryKiB: 64 << 10, Threads: 4}

// Bounds of what is run at all. They are checked before the run, so that a
// vault file cannot make the daemon hang or run out of memory.
const (
	maxKDFTime      = 64
	maxKDFMemoryKiB = 1 << 20 // 1 GiB
	maxKDFThreads   = 16
	// maxKDFCost bounds passes × KiB over all passphrase slots of one file:
	// about half a minute on a small machine.
	maxKDFCost = 16 << 20
)

// calibrateTo is how long one run should take at least: a person hardly waits,
// a guesser does.
const calibrateTo = 500 * time.Millisecond

const saltBytes = 16

// check applies the bounds.
func (p KDFParams) check() error {
	switch {
	case p.Time < 1 || p.Time > maxKDFTime:
		return fmt.Errorf("%w: %d passes", ErrWeakKDF, p.Time)
	case p.Threads < 1 || p.Threads > maxKDFThreads:
		return fmt.Errorf("%w: %d threads", ErrWeakKDF, p.Threads)
	case p.MemoryKiB < 8*uint32(p.Threads) || p.MemoryKiB > maxKDFMemoryKiB:
		return fmt.Errorf("%w: %d KiB", ErrWeakKDF, p.MemoryKiB)
	case p.cost() > maxKDFCost:
		return fmt.Errorf("%w: %d passes over %d KiB", ErrWeakKDF, p.Time, p.MemoryKiB)
	}
	return nil
}

func (p KDFParams) cost() uint64 { return uint64(p.Time) * uint64(p.MemoryKiB) }

// belowFloor says whether p is cheaper than a vault may be created with.
func (p KDFParams) belowFloor() bool {
	return p.Time < floorKDF.Time || p.MemoryKiB < floorKDF.MemoryKiB || p.Threads < floorKDF.Threads
}

// kdfMu lets one run at a time hold its memory.
var kdfMu sync.Mutex

// run derives a 32-byte key. The caller has checked p.
func (p KDFParams) run(pass secret.Secret, salt []byte) secret.Secret {
	kdfMu.Lock()
	defer kdfMu.Unlock()
	var out secret.Secret
	pass.Use(func(b []byte) {
		key := argon2.IDKey(b, salt, p.Time, p.MemoryKiB, p.Threads, keyBytes)
		out = secret.New(key)
		clear(key)
	})
	return out
}

// newKDF decides the parameters of a new vault.
func newKDF(o Options) (KDFParams, error) {
	p := o.KDF
	if p == (KDFParams{}) {
		return calibrate(), nil
	}
	if err := p.check(); err != nil {
		return KDFParams{}, err
	}
	if p.belowFloor() && !o.DangerouslyWeakKDF {
		return KDFParams{}, fmt.Errorf("%w: at least %d passes over %d KiB with %d threads are needed",
			ErrWeakKDF, floorKDF.Time, floorKDF.MemoryKiB, floorKDF.Threads)
	}
	return p, nil
}

// Check says whether a new slot may have this cost. ErrWeakKDF is below the
// floor (RFC 9106, section 4) or beyond what an opening may cost.
func (p KDFParams) Check() error {
	if p == (KDFParams{}) {
		return nil // measured when it is needed
	}
	_, err := newKDF(Options{KDF: p})
	return err
}

// calibrate times one run at the floor and adds passes.
func calibrate() KDFParams {
	p := floorKDF
	start := time.Now()
	p.run(secret.New([]byte("calibration")), make([]byte, saltBytes)).Wipe()
	each := max(time.Since(start)/time.Duration(p.Time), time.Millisecond)
	p.Time = min(max(p.Time, uint32(calibrateTo/each)+1), maxKDFTime)
	return p
}

// lock is a passphrase with its salt: what a passphrase slot's parameters and
// the operator's verifier hold.
type lock struct {
	kdf  KDFParams
	salt [saltBytes]byte
}

func newLock(p KDFParams) lock {
	l := lock{kdf: p}
	_, _ = rand.Read(l.salt[:]) // crypto/rand.Read never fails
	return l
}

// kdfArgon2id is the only derivation; another one gets another number.
const kdfArgon2id = 1

func (l lock) encode(w *writer) {
	w.u8(kdfArgon2id)
	w.raw(l.salt[:])
	w.u32(l.kdf.Time)
	w.u32(l.kdf.MemoryKiB)
	w.u8(l.kdf.Threads)
}

func decodeLock(r *reader) lock {
	var l lock
	if r.u8() != kdfArgon2id {
		r.bad = true
	}
	r.fill(l.salt[:])
	l.kdf = KDFParams{Time: r.u32(), MemoryKiB: r.u32(), Threads: r.u8()}
	if l.kdf.check() != nil {
		r.bad = true
	}
	return l
}

func (l lock) key(pass secret.Secret) secret.Secret { return l.kdf.run(pass, l.salt[:]) }

// maxPassphrase bounds what is hashed.
const maxPassphrase = 1024

func checkPassphrase(pass secret.Secret) error {
	switch n := pass.Len(); {
	case n == 0:
		return fmt.Errorf("%w: it is empty", ErrBadPassphrase)
	case n > maxPassphrase:
		return fmt.Errorf("%w: it is longer than %d bytes", ErrBadPassphrase, maxPassphrase)
	}
	return nil
}
