// Package testkit holds what tests of several packages share: fake remote
// systems with certificates of their own, a search for planted secrets through
// files and processes, and a check for goroutines left behind. It must never be
// linked into a program; only test files may import it.
package testkit

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/contracttest/upstream"
)

// CA makes a certificate authority for a test.
func CA(t testing.TB) *upstream.CA {
	t.Helper()
	ca, err := upstream.NewCA(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// CAFile writes an authority's certificate to a new file and returns its path.
func CAFile(t testing.TB, ca *upstream.CA) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Start starts an upstream that ends with the test.
func Start(t testing.TB, o upstream.Options) *upstream.Server {
	t.Helper()
	s, err := upstream.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// HTTPS starts an upstream whose certificate, signed by ca, is for hosts;
// without hosts it is for "localhost" and "127.0.0.1".
func HTTPS(t testing.TB, ca *upstream.CA, script upstream.Script, hosts ...string) *upstream.Server {
	t.Helper()
	return Start(t, upstream.Options{Certificate: Leaf(t, ca, hosts...), Script: script})
}

// Leaf makes a server certificate; without hosts it is for "localhost" and
// "127.0.0.1".
func Leaf(t testing.TB, ca *upstream.CA, hosts ...string) tls.Certificate {
	t.Helper()
	if len(hosts) == 0 {
		hosts = []string{"localhost", "127.0.0.1"}
	}
	c, err := ca.Leaf(hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Always answers every request the same way.
func Always(a upstream.Answer) upstream.Script {
	return func(upstream.Request) upstream.Answer { return a }
}

// InOrder answers the first request with the first answer and so on; the last
// one answers everything after it.
func InOrder(answers ...upstream.Answer) upstream.Script {
	return func(r upstream.Request) upstream.Answer { return answers[min(r.N, len(answers))-1] }
}

// NoLeaks fails the test if goroutines of this module are left when it ends.
// Call it first, so that it looks after every other clean-up.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := ours()
	t.Cleanup(func() {
		var left []string
		for range 200 { // two seconds for goroutines that are on their way out
			left = nil
			for id, stack := range ours() {
				if _, was := before[id]; !was {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

// ours returns the stacks of goroutines that run code of this module or of
// net/http, by goroutine.
func ours() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	out := map[string]string{}
	for _, g := range strings.Split(string(buf), "\n\n") {
		id, _, _ := strings.Cut(g, " [")
		if strings.Contains(g, "testkit.ours") || strings.Contains(g, "testing.tRunner") {
			continue
		}
		if strings.Contains(g, "chatelaine/") || strings.Contains(g, "net/http.") {
			out[id] = g
		}
	}
	return out
}
