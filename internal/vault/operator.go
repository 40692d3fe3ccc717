package vault

import (
	"bytes"
	"context"
	"crypto/hmac"
	"fmt"

	"chatelaine/internal/secret"
)

// infoProof begins what a proof signs, so that the key can never be made to
// sign anything else.
const infoProof = "chatelaine/v1 proof\x00"

// ProofParams is what a client needs to make the operator's key out of the
// passphrase.
type ProofParams struct {
	KDF       string // "argon2id"
	Salt      []byte
	Time      uint32
	MemoryKiB uint32
	Threads   uint8
}

// SetOperatorPassphrase sets or replaces the passphrase that decisions are
// proved with. It answers ErrSamePassphrase where it also opens the vault, so
// that one who learns it cannot unlock. Only the key that it derives is kept.
func (v *Vault) SetOperatorPassphrase(pass secret.Secret) error {
	if err := checkPassphrase(pass); err != nil {
		return err
	}
	o, err := v.current()
	if err != nil {
		return err
	}
	if key, err := o.head.unwrap(pass); err == nil {
		key.Wipe()
		return ErrSamePassphrase
	}
	kdf := v.o.KDF
	if kdf == (KDFParams{}) {
		kdf = floorKDF // the client runs it for each decision
	}
	if err := kdf.check(); err != nil {
		return err
	}
	if kdf.belowFloor() && !v.o.DangerouslyWeakKDF {
		return fmt.Errorf("%w for the operator passphrase", ErrWeakKDF)
	}
	l := newLock(kdf)
	set := &operator{lock: l, key: l.key(pass)}
	_, err = v.commit(context.Background(), func(_ opened, c *contents, _ uint64) error {
		c.operator = set
		return nil
	})
	if err != nil {
		set.key.Wipe()
	}
	return err
}

// ProofParams returns how the operator's key is derived. It fails with
// VAULT_LOCKED or ErrNoOperator.
func (v *Vault) ProofParams() (ProofParams, error) {
	o, err := v.current()
	if err != nil {
		return ProofParams{}, err
	}
	op := o.contents.operator
	if op == nil {
		return ProofParams{}, ErrNoOperator
	}
	return ProofParams{
		KDF: "argon2id", Salt: bytes.Clone(op.salt[:]),
		Time: op.kdf.Time, MemoryKiB: op.kdf.MemoryKiB, Threads: op.kdf.Threads,
	}, nil
}

// CheckProof checks HMAC-SHA256 under the operator's key over
// "chatelaine/v1 proof", a zero byte and the challenge. Whether a challenge is
// fresh is for the caller. It answers ErrProofRefused, *ProofError when it
// comes too soon after wrong ones, ErrNoOperator or VAULT_LOCKED.
func (v *Vault) CheckProof(challenge, sum []byte) error {
	err := v.proofs.try(func() error {
		o, err := v.current()
		if err != nil {
			return err
		}
		if o.contents.operator == nil {
			return ErrNoOperator
		}
		want := mac(o.contents.operator.key, []byte(infoProof), challenge)
		if want == nil {
			return errLocked()
		}
		if !hmac.Equal(want, sum) {
			return ErrProofRefused
		}
		return nil
	}, ErrProofRefused)
	if err == nil {
		v.touch()
	}
	return err
}
