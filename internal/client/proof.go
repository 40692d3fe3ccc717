package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/argon2"
)

// proofLabel separates this use of the key from every other.
const proofLabel = "chatelaine/v1 proof\x00"

// The bounds of the key derivation, checked before it runs: a daemon (or what
// claims to be one) cannot make the terminal burn memory for minutes, nor make
// the passphrase cheap to guess from the answer.
const (
	kdfName       = "argon2id"
	kdfMinTime    = 1
	kdfMaxTime    = 16
	kdfMinMemory  = 8 << 10 // KiB
	kdfMaxMemory  = 1 << 20 // KiB, 1 GiB
	kdfMaxThreads = 64
	kdfMinSalt    = 16 // bytes
	kdfMaxSalt    = 64
	kdfKeyBytes   = 32
	challengeSize = 32
)

// ProofPassphrase is the kind of proof that an operator passphrase gives.
const ProofPassphrase = "passphrase"

// KDF says how the passphrase becomes a key.
type KDF struct {
	Name      string `json:"name"`
	Salt      []byte `json:"salt"`
	Time      uint32 `json:"time"`
	MemoryKiB uint32 `json:"memory_kib"`
	Threads   uint8  `json:"threads"`
}

// ProofKind is one kind of proof that the daemon would take.
type ProofKind struct {
	Kind string `json:"kind"`
	KDF  *KDF   `json:"kdf,omitempty"`
}

// Challenge is what a proof answers: single use, short-lived. Covers is the
// daemon's own sentence about what a proof over it allows; two challenges with
// the same Digest allow the same.
type Challenge struct {
	ID        string      `json:"challenge_id"`
	Challenge []byte      `json:"challenge"`
	Covers    string      `json:"covers"`
	Digest    string      `json:"digest"`
	ExpiresAt time.Time   `json:"expires_at"`
	Proofs    []ProofKind `json:"proofs"`
}

// Proof is the answer to a challenge.
type Proof struct {
	ChallengeID string `json:"challenge_id"`
	Kind        string `json:"kind"`
	MAC         []byte `json:"mac"`
}

// Prove answers the challenge with the operator passphrase.
func (c Challenge) Prove(passphrase []byte) (Proof, error) {
	for _, k := range c.Proofs {
		if k.Kind != ProofPassphrase || k.KDF == nil {
			continue
		}
		mac, err := ProofMAC(passphrase, *k.KDF, c.Challenge)
		if err != nil {
			return Proof{}, err
		}
		return Proof{ChallengeID: c.ID, Kind: ProofPassphrase, MAC: mac}, nil
	}
	return Proof{}, errors.New("the daemon takes no passphrase for this; this program knows no other proof")
}

// ProofMAC is HMAC-SHA256 under argon2id(passphrase) over the label and the
// challenge. Costs outside the fixed bounds are refused before anything runs.
func ProofMAC(passphrase []byte, k KDF, challenge []byte) ([]byte, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	if len(challenge) != challengeSize {
		return nil, fmt.Errorf("the challenge has %d bytes instead of %d", len(challenge), challengeSize)
	}
	if len(passphrase) == 0 {
		return nil, errors.New("the passphrase is empty")
	}
	return k.mac(passphrase, challenge), nil
}

// mac is the bare formula; its costs were checked.
func (k KDF) mac(passphrase, challenge []byte) []byte {
	key := argon2.IDKey(passphrase, k.Salt, k.Time, k.MemoryKiB, k.Threads, kdfKeyBytes)
	defer clear(key)
	m := hmac.New(sha256.New, key)
	m.Write([]byte(proofLabel))
	m.Write(challenge)
	return m.Sum(nil)
}

func (k KDF) check() error {
	switch {
	case k.Name != kdfName:
		return errors.New("the daemon asks for a key derivation that this program does not know")
	case len(k.Salt) < kdfMinSalt || len(k.Salt) > kdfMaxSalt:
		return fmt.Errorf("the salt has %d bytes; %d to %d are allowed", len(k.Salt), kdfMinSalt, kdfMaxSalt)
	case k.Time < kdfMinTime || k.Time > kdfMaxTime:
		return fmt.Errorf("argon2id time %d is outside %d to %d", k.Time, kdfMinTime, kdfMaxTime)
	case k.MemoryKiB < kdfMinMemory || k.MemoryKiB > kdfMaxMemory:
		return fmt.Errorf("argon2id memory of %d KiB is outside %d to %d", k.MemoryKiB, kdfMinMemory, kdfMaxMemory)
	case k.Threads < 1 || k.Threads > kdfMaxThreads:
		return fmt.Errorf("argon2id with %d threads is outside 1 to %d", k.Threads, kdfMaxThreads)
	}
	return nil
}
