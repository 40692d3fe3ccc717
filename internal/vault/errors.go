package vault

import (
	"errors"
	"fmt"
	"time"

	"chatelaine/internal/fault"
)

// The vault's own refusals, for the operator's side. Each is wrapped with the
// file, the identity or the rule it is about, never with a secret.
var (
	ErrAbsent          = errors.New("there is no vault")
	ErrExists          = errors.New("there is a vault already")
	ErrNotPrivate      = errors.New("the vault file is not private")
	ErrDamaged         = errors.New("the vault is damaged")
	ErrChanged         = errors.New("the vault file was changed by something else")
	ErrRolledBack      = errors.New("the vault is older than its last known generation")
	ErrWrongPassphrase = errors.New("the passphrase is wrong")
	ErrBadPassphrase   = errors.New("the passphrase cannot be used")
	ErrSamePassphrase  = errors.New("the operator passphrase must differ from the vault's")
	ErrWeakKDF         = errors.New("the key derivation is too weak or too costly")
	ErrNoOperator      = errors.New("no operator passphrase is set")
	ErrProofRefused    = errors.New("the proof is wrong")
	ErrNoIdentity      = errors.New("there is no such identity in the vault")
	ErrBadIdentity     = errors.New("the identity cannot be stored")
	ErrReplaced        = errors.New("the identity was changed meanwhile; nothing was replaced, look again")
	ErrTooLarge        = errors.New("too large for the vault")
	ErrNoSlot          = errors.New("there is no such slot")
	ErrBadSlot         = errors.New("the slot cannot be made")
	ErrLastSlot        = errors.New("it is the last slot that a person can open")
	ErrWrongCode       = errors.New("the recovery code is wrong")
	ErrBadCode         = errors.New("this is no recovery code")
	ErrUnattended      = errors.New("no slot opened the vault by itself")
	ErrLockedByHand    = errors.New("the vault was locked since the start; only a person opens it again")
	ErrBadBackup       = errors.New("the backup cannot be used")
)

// ProofError says that a passphrase or proof came too soon after wrong ones; it
// was not looked at.
type ProofError struct {
	RetryAfter time.Duration
}

// Error says how long to wait, in whole seconds.
func (e *ProofError) Error() string {
	return fmt.Sprintf("too soon after a wrong one: try again in %d s", int64((e.RetryAfter+time.Second-1)/time.Second))
}

// errLocked is the answer of everything that needs the data key.
func errLocked() error { return fault.New(fault.VaultLocked, nil) }
