package vault

import (
	"context"
	"errors"
	"net/http"
	"time"

	"chatelaine/internal/secret"
)

type Options struct {
	Backend            Backend
	KDF                KDFParams
	DangerouslyWeakKDF bool
	GenerationFile     string
}
type KDFParams struct {
	Time, MemoryKiB uint32
	Threads         uint8
}
type Vault struct{}
type State struct {
	State, Reason, Backend, Rollback string
	Since                            time.Time
	Identities                       int
}
type Info struct {
	Name       string
	Binding    Binding
	Generation uint64
	Updated    time.Time
	Suspended  bool
}
type ProofParams struct {
	KDF             string
	Salt            []byte
	Time, MemoryKiB uint32
	Threads         uint8
}
type ProofError struct{ RetryAfter time.Duration }

func (e *ProofError) Error() string { return "try again later" }

type Backend interface {
	Get(ctx context.Context, name string) ([]byte, error)
	Put(ctx context.Context, name string, b []byte) error
	Delete(ctx context.Context, name string) error
	Name() string
}

var (
	ErrAbsent           = errors.New("there is no vault")
	ErrExists           = errors.New("there is a vault already")
	ErrDamaged          = errors.New("the vault is damaged")
	ErrRolledBack       = errors.New("the vault is older than its last known generation")
	ErrWrongPassphrase  = errors.New("the passphrase is wrong")
	ErrSamePassphrase   = errors.New("the operator passphrase must differ from the vault's")
	ErrNoOperator       = errors.New("no operator passphrase is set")
	ErrProofRefused     = errors.New("the proof is wrong")
	ErrNoIdentity       = errors.New("there is no such identity in the vault")
	ErrKeychainAbsent   = errors.New("the keychain has no such item")
	ErrKeychainLocked   = errors.New("the keychain is locked")
	ErrKeychainSilent   = errors.New("the keychain does not answer")
	ErrKeychainNotThere = errors.New("there is no keychain")
	errNotYet           = errors.New("not yet")
)

func Create(path string, pass secret.Secret, o Options) (*Vault, error) { return nil, errNotYet }
func Open(path string, o Options) (*Vault, error)                       { return nil, errNotYet }
func (v *Vault) State() State                                           { return State{} }
func (v *Vault) CheckOpen() error                                       { return errNotYet }
func (v *Vault) Unlock(ctx context.Context, pass secret.Secret) error   { return errNotYet }
func (v *Vault) Lock(reason string)                                     {}
func (v *Vault) OnLock(f func(reason string))                           {}
func (v *Vault) OnSuspend(f func(name string))                          {}
func (v *Vault) Put(ctx context.Context, name string, b Binding, s secret.Secret, short bool) (uint64, error) {
	return 0, errNotYet
}
func (v *Vault) Delete(ctx context.Context, name string) error            { return errNotYet }
func (v *Vault) Rebind(ctx context.Context, name string, b Binding) error { return errNotYet }
func (v *Vault) List() []Info                                             { return nil }
func (v *Vault) Generation(ctx context.Context, name string) (uint64, error) {
	return 0, errNotYet
}
func (v *Vault) Suspect(name string)                                    {}
func (v *Vault) Lease(ctx context.Context, name string) (*Lease, error) { return nil, errNotYet }
func (v *Vault) Subkey(label string) (secret.Secret, error)             { return secret.Secret{}, errNotYet }
func (v *Vault) SetOperatorPassphrase(pass secret.Secret) error         { return errNotYet }
func (v *Vault) ProofParams() (ProofParams, error)                      { return ProofParams{}, errNotYet }
func (v *Vault) CheckProof(challenge, mac []byte) error                 { return errNotYet }
func (v *Vault) PutState(name string, b []byte) error                   { return errNotYet }
func (v *Vault) GetState(name string) ([]byte, bool, error)             { return nil, false, errNotYet }

type Lease struct{}

func NoLease() *Lease                               { return nil }
func (l *Lease) Generation() uint64                 { return 0 }
func (l *Lease) Attach(h http.Header, c Made) error { return errNotYet }
func (l *Lease) Scan(b []byte) []secret.Hit         { return nil }
func (l *Lease) Close()                             {}

func Keychain(service string, timeout time.Duration) Backend { return nil }
