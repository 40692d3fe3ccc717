package vault

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// What can be wrong with a keychain. The text around them says what to do.
var (
	ErrKeychainAbsent      = errors.New("the keychain has no such item")
	ErrKeychainLocked      = errors.New("the keychain is locked")
	ErrKeychainUnavailable = errors.New("the keychain is not available")
)

const (
	// keychainTimeout is for a call whose caller gave none: a keychain answers
	// in milliseconds, a person at a prompt does not.
	keychainTimeout = 5 * time.Second
	// maxKeychainItem is the longest value that is stored, as text. Keychains
	// take more, slowly; no sealed credential needs more.
	maxKeychainItem = 16 << 10
	// keychainStuck is how many calls may hang in the library at once. It knows
	// no deadline, so a call that is given up stays behind in a goroutine.
	keychainStuck = 4
)

type keychain struct {
	service string
	timeout time.Duration
	places  chan struct{}
}

// Keychain keeps items in the operating system's keychain, under the given
// service name. timeout bounds each call; 0 means five seconds. Values are
// stored as base64, because some keychains take only text.
func Keychain(service string, timeout time.Duration) Backend {
	if timeout <= 0 {
		timeout = keychainTimeout
	}
	return &keychain{service: service, timeout: timeout, places: make(chan struct{}, keychainStuck)}
}

// Name says which keychain.
func (k *keychain) Name() string { return "OS keychain, service " + k.service }

// Get reads one item.
func (k *keychain) Get(ctx context.Context, name string) ([]byte, error) {
	text, err := k.do(ctx, func() (string, error) { return keyring.Get(k.service, name) })
	if err != nil {
		return nil, err
	}
	if len(text) > maxKeychainItem {
		return nil, fmt.Errorf("keychain item %s: %w: more than %d bytes", name, ErrTooLarge, maxKeychainItem)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("keychain item %s: it is not what was stored there", name)
	}
	return b, nil
}

// Put stores one item in place of what was there.
func (k *keychain) Put(ctx context.Context, name string, b []byte) error {
	text := base64.StdEncoding.EncodeToString(b)
	if len(text) > maxKeychainItem {
		return fmt.Errorf("keychain item %s: %w: more than %d bytes", name, ErrTooLarge, maxKeychainItem)
	}
	_, err := k.do(ctx, func() (string, error) { return "", keyring.Set(k.service, name, text) })
	return err
}

// Delete removes one item.
func (k *keychain) Delete(ctx context.Context, name string) error {
	_, err := k.do(ctx, func() (string, error) { return "", keyring.Delete(k.service, name) })
	return err
}

type answer struct {
	text string
	err  error
}

// do runs one call of the library within the time-out, after it has made sure
// that there is somebody to answer without asking a person.
func (k *keychain) do(ctx context.Context, call func() (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	if err := keychainReady(ctx); err != nil {
		return "", k.silence(ctx, err)
	}
	select {
	case k.places <- struct{}{}:
	case <-ctx.Done():
		return "", k.silence(ctx, fmt.Errorf("%w: %d calls are stuck already", ErrKeychainUnavailable, keychainStuck))
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-k.places }()
		text, err := call()
		done <- answer{text, err}
	}()
	select {
	case a := <-done:
		return a.text, keychainError(a.err)
	case <-ctx.Done():
		return "", k.silence(ctx, ErrKeychainUnavailable)
	}
}

// silence names the time-out where that is why.
func (k *keychain) silence(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: no answer within %s; it may be waiting for a person at a prompt", ErrKeychainUnavailable, k.timeout)
	}
	return err
}

// keychainError gives the library's errors our names. It has a value only for
// the absent item; the others are texts.
func keychainError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return ErrKeychainAbsent
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return fmt.Errorf("%w for the keychain", ErrTooLarge)
	case strings.Contains(err.Error(), "failed to unlock correct collection"):
		return fmt.Errorf("%w: unlock the session's keyring", ErrKeychainLocked)
	}
	return fmt.Errorf("%w: %w", ErrKeychainUnavailable, err)
}
