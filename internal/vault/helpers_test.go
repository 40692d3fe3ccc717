package vault

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

const (
	goodPass = "vault passphrase of the test"
	planted  = "Xq7-planted-credential-9Zt"
)

func sec(s string) secret.Secret { return secret.New([]byte(s)) }

// cheap makes key derivation take no time.
var cheap = Options{KDF: KDFParams{Time: 1, MemoryKiB: 8, Threads: 1}, DangerouslyWeakKDF: true}

func bearer() Binding {
	return Binding{Kind: KindBearer, Scheme: "https", Host: "deploy.example", Port: 443, BasePath: "/api"}
}

// madeFor is the connection that a binding wants.
func madeFor(b Binding) Made {
	return Made{Scheme: b.Scheme, Host: b.Host, Port: b.Port, BasePath: b.BasePath, CADigest: b.CADigest, Pins: b.Pins, PeerSPKI: b.Pins}
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "vault") }

func create(t testing.TB, o Options) (*Vault, string) {
	t.Helper()
	path := newPath(t)
	v, err := Create(path, sec(goodPass), o)
	if err != nil {
		t.Fatal(err)
	}
	return v, path
}

// reopen opens and unlocks the file with a new process's eyes.
func reopen(t testing.TB, path string, o Options) *Vault {
	t.Helper()
	v, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, v)
	return v
}

func unlock(t testing.TB, v *Vault) {
	t.Helper()
	if err := v.Unlock(t.Context(), sec(goodPass)); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, v *Vault, name, text string, b Binding) uint64 {
	t.Helper()
	gen, err := v.Put(t.Context(), name, b, sec(text), false)
	if err != nil {
		t.Fatal(err)
	}
	return gen
}

// attached returns the Authorization header that a lease writes.
func attached(t testing.TB, v *Vault, name string, c Made) string {
	t.Helper()
	l, err := v.Lease(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := http.Header{}
	if err := l.Attach(headers(h), c); err != nil {
		t.Fatal(err)
	}
	return h.Get("Authorization")
}

func wantCode(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("got %v, want code %s", err, code)
	}
	refuseLeak(t, err)
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	refuseLeak(t, err)
}

// refuseLeak fails where an error quotes a secret or a passphrase.
func refuseLeak(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, s := range []string{planted, goodPass} {
		if strings.Contains(err.Error(), s[:8]) {
			t.Errorf("the error quotes a secret: %v", err)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, fileMode); err != nil {
		t.Fatal(err)
	}
}

// resum makes the checksum fit again, as an attacker would.
func resum(b []byte) []byte {
	content := bytes.Clone(b[:len(b)-sha256.Size])
	sum := sha256.Sum256(content)
	return append(content, sum[:]...)
}

// memory is a backend for tests that need no keychain.
type memory struct {
	mu    sync.Mutex
	items map[string][]byte
	fail  error
}

func newMemory() *memory { return &memory{items: map[string][]byte{}} }

func (m *memory) Name() string { return "memory" }

func (m *memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.items[name]
	if m.fail != nil {
		return nil, m.fail
	}
	if !ok {
		return nil, ErrKeychainAbsent
	}
	return bytes.Clone(b), nil
}

func (m *memory) Put(_ context.Context, name string, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		m.items[name] = bytes.Clone(b)
	}
	return m.fail
}

func (m *memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		delete(m.items, name)
	}
	return m.fail
}

func (m *memory) setFail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// headers is a request without a body, as the executor shows it to a lease.
type headers http.Header

func (h headers) SetHeader(name, value string) error {
	if _, taken := h[name]; taken {
		return errors.New("taken")
	}
	h[name] = []string{value}
	return nil
}

func (headers) FillBody(func([]byte) []byte) error { return errors.New("no hole") }
func (headers) Hole() (form, ok bool)              { return false, false }
