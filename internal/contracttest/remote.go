package contracttest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest/planted"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/executor"
)

// remote is the loopback server of one fixture.
type remote struct {
	srv    *upstream.Server
	exec   *executor.Executor
	secret *planted.Secret

	mu      sync.Mutex // guards the rest
	answers []answer
	next    int           // the answer that comes now
	used    bool          // it was given before: it is one that is repeated
	step    string        // the step that is being sent
	limit   time.Duration // how long that step may take
	steps   []string      // the step of each request that came
	dialled []string      // addresses that the executor wanted
	extra   int           // requests beyond the last answer
	strays  []string      // requests for which the script has another step's answer
}

// trust is the authority of a run and the certificates it has made.
type trust struct {
	ca *upstream.CA

	mu     sync.Mutex // guards leaves
	leaves map[string]tls.Certificate
}

func newTrust() (*trust, error) {
	ca, err := upstream.NewCA("contract tests")
	return &trust{ca: ca, leaves: map[string]tls.Certificate{}}, err
}

func (t *trust) leaf(host string) (tls.Certificate, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.leaves[host]; ok {
		return c, nil
	}
	c, err := t.ca.Leaf(host)
	if err == nil {
		t.leaves[host] = c
	}
	return c, err
}

// newRemote starts the server that stands for the target. The target keeps its
// host name; only the dialer and the trust are replaced.
func newRemote(t *trust, target *actions.Target, answers []answer, secret *planted.Secret) (*remote, error) {
	r := &remote{answers: answers, secret: secret}
	// Every identity is asked for a certificate, so that one is seen that shows what
	// it should not.
	o := upstream.Options{Script: r.answer, AsksClient: true}
	if target.Scheme() == "https" {
		leaf, err := t.leaf(target.Host())
		if err != nil {
			return nil, err
		}
		o.Certificate = leaf
	}
	srv, err := upstream.Start(o)
	if err != nil {
		return nil, fmt.Errorf("no server on loopback: %w", err)
	}
	r.srv = srv
	r.exec = executor.New(executor.Options{Dial: r.dial, Roots: t.ca.Pool()})
	return r, nil
}

func (r *remote) close() {
	r.exec.Close()
	r.srv.Close()
}

// dial notes where the executor wanted to go and goes to the server instead.
func (r *remote) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	r.mu.Lock()
	r.dialled = append(r.dialled, addr)
	r.mu.Unlock()
	var d net.Dialer
	return d.DialContext(ctx, network, r.srv.Addr())
}

// tooLate says whether an answer comes after the executor has given up. The
// delay is compared with the real limits and not sat out: the connection ends
// instead, which is the same to a caller.
func (a answer) tooLate(limit time.Duration) bool {
	return a.delay >= min(limit, executor.DefaultHeaderTimeout)
}

// begin says which step is sent now, and how long it may take.
func (r *remote) begin(step string, limit time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step, r.limit = step, limit
}

// exhausted says whether a request has come that the script has no answer for.
func (r *remote) exhausted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.extra > 0 || len(r.strays) > 0
}

// scriptedOnce says whether the whole script has one answer for a step, given once.
func (r *remote) scriptedOnce(step string) bool {
	n, repeats := 0, false
	for _, a := range r.answers {
		if a.step == step {
			n, repeats = n+1, a.repeat
		}
	}
	return n == 1 && !repeats
}

// left counts the answers that nobody asked for.
func (r *remote) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.answers) - r.next
	if r.used && n > 0 {
		n--
	}
	return n
}

// answer gives the answers in order, each to a request of its own step; one
// that is repeated as long as that step is sent, and none beyond the last.
func (r *remote) answer(upstream.Request) upstream.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, r.step)
	if r.used && r.answers[r.next].step != r.step {
		r.next, r.used = r.next+1, false
	}
	if r.next >= len(r.answers) {
		r.extra++
		return upstream.Answer{Close: upstream.BeforeAnswer}
	}
	a := r.answers[r.next]
	if a.step != r.step {
		r.strays = append(r.strays, fmt.Sprintf("answers[%d] is for the step %s, and %s was sent", r.next, a.step, r.step))
		return upstream.Answer{Close: upstream.BeforeAnswer}
	}
	if a.repeat {
		r.used = true
	} else {
		r.next++
	}
	return r.render(a, r.limit)
}

// render makes a server's answer of a fixture's.
func (r *remote) render(a answer, limit time.Duration) upstream.Answer {
	fill := func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte(standInCredential), []byte(r.secret.Text()))
	}
	out := upstream.Answer{Status: a.status, Body: fill(a.body)}
	for _, h := range a.headers {
		out.Headers = append(out.Headers, upstream.Header{Name: h.Name, Value: string(fill([]byte(h.Value)))})
	}
	switch {
	case a.tooLate(limit), a.close == "before_answer":
		out.Close = upstream.BeforeAnswer
	case a.close == "after_headers":
		out.Close = upstream.AfterHeaders
		if len(out.Body) == 0 && !bodiless(a.status) {
			out.Length = strconv.Itoa(len("{}")) // a body is promised and does not come
		}
	}
	return out
}

func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}
