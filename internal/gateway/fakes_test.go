package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// fakeVault is one identity, and whether it may be used.
type fakeVault struct {
	secret     string // what a lease finds, "" for nothing; set before the first call
	mu         sync.Mutex
	open       bool
	generation uint64
	leases     int // out now
	suspects   int
	refreshes  int
	bad        error
	broken     bool // a lease panics
	tokens     *fakeTokens
}

func (v *fakeVault) set(open bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open = open
	if !open {
		v.tokens.drop()
	}
}

func (v *fakeVault) replace(generation uint64, bad error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.generation, v.bad = generation, bad
}

func (v *fakeVault) out() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.leases
}

func (v *fakeVault) Open() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.open {
		return fault.New(fault.VaultLocked, nil)
	}
	return v.bad
}

func (v *fakeVault) Generation(context.Context, string) (uint64, error) {
	if err := v.Open(); err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.generation, nil
}

func (v *fakeVault) Bound(*actions.IdentitySpec, *actions.Target) error { return nil }
func (v *fakeVault) Suspect(string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.suspects++
}

func (v *fakeVault) Refresh(ctx context.Context, x Exchange) {
	v.mu.Lock()
	v.refreshes++
	v.mu.Unlock()
	_ = v.tokens.mint(ctx, x)
}

func (v *fakeVault) Lease(context.Context, string) (Lease, error) {
	if err := v.Open(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broken {
		panic("planted")
	}
	v.leases++
	return &fakeLease{v: v, generation: v.generation}, nil
}

type fakeLease struct {
	v          *fakeVault
	generation uint64
	once       sync.Once
	over       atomic.Bool
	token      string // that it attaches
}

func (l *fakeLease) Attach(o executor.Outgoing, _ executor.Connection) error {
	if l.v.tokens != nil {
		return o.SetHeader("Authorization", "Bearer "+l.token)
	}
	return o.SetHeader("Authorization", fmt.Sprintf("Bearer generation-%d", l.generation))
}
func (l *fakeLease) Generation() uint64 { return l.generation }
func (l *fakeLease) Scan(b []byte) []secret.Hit {
	if l.v.secret != "" && !l.over.Load() && bytes.Contains(b, []byte(l.v.secret)) {
		return []secret.Hit{{Encoding: "raw"}}
	}
	return nil
}

func (l *fakeLease) Close() {
	l.once.Do(func() {
		l.over.Store(true)
		l.v.mu.Lock()
		defer l.v.mu.Unlock()
		l.v.leases--
	})
}

// reply is what the remote says; the zero status closes the connection without
// an answer.
type reply struct {
	status int
	body   string
	header http.Header
	after  time.Duration
}

// remote is the other end of every connection.
type remote struct {
	mu     sync.Mutex
	script func(method, path, body string) reply
	got    []string
	auth   []string // of each, Authorization
	serves sync.WaitGroup
	down   bool // dials are refused
	conns  map[net.Conn]bool
}

func (m *remote) answer(script func(method, path, body string) reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = script
}

func (m *remote) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.got...)
}

// cut breaks every connection and refuses new ones.
func (m *remote) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = true
	for c := range m.conns {
		_ = c.Close()
	}
}

func (m *remote) mend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = false
}

func (m *remote) dial(context.Context, string, string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	if m.conns == nil {
		m.conns = map[net.Conn]bool{}
	}
	m.conns[far] = true
	m.serves.Go(func() { m.serve(far) })
	return near, nil
}

func (m *remote) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		m.mu.Lock()
		delete(m.conns, c)
		m.mu.Unlock()
	}()
	q, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	m.got = append(m.got, q.Method+" "+q.URL.Path)
	m.auth = append(m.auth, q.Header.Get("Authorization"))
	script := m.script
	m.mu.Unlock()
	a := script(q.Method, q.URL.Path, string(body))
	time.Sleep(a.after)
	if a.status == 0 {
		return
	}
	head := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n", a.status, len(a.body))
	for name, values := range a.header {
		head += name + ": " + values[0] + "\r\n"
	}
	_, _ = io.WriteString(c, head+"\r\n"+a.body)
}
