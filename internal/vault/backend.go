package vault

import "context"

// Backend keeps sealed bytes under names. It never sees a secret in clear, so a
// thief of a backend gets ciphertext. A Get of a name that is not there answers
// ErrKeychainAbsent. Every call ends in bounded time.
type Backend interface {
	Get(ctx context.Context, name string) ([]byte, error)
	Put(ctx context.Context, name string, b []byte) error
	Delete(ctx context.Context, name string) error
	Name() string
}
