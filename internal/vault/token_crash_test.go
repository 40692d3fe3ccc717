package vault

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// Two daemons on one folder cannot lose it: the second does not get the folder, and
// where somebody wrote the file all the same nothing is saved over it.
func TestTwoProcessesOnOneFile(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	lock, err := durable.LockDir(filepath.Dir(path), "the first one")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	cmd := child(t, "second", os.Environ(), path)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "in use by the first one") {
		t.Errorf("the second process got the folder: %s", out)
	}

	e := rotates()
	cmd = child(t, "stranger", os.Environ(), path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err = carried(t, v, "a", e.exchange)
	wantCode(t, err, fault.IdentityUnavailable)
	if !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	if got := stored(t, reopen(t, path, cheap), "a"); got != "what the stranger put there" {
		t.Errorf("the file holds %s", got)
	}
	if r := v.rotations.saving["a"]; !r.fresh.Equal(sec(refreshOf(1))) {
		t.Error("the new refresh token is gone")
	}
}

func init() {
	children["second"] = func(args []string) error {
		_, err := durable.LockDir(filepath.Dir(args[0]), "the second one")
		return err
	}
	children["stranger"] = func(args []string) error {
		v, err := Open(args[0], cheap)
		if err != nil {
			return err
		}
		ctx := context.Background()
		if err := v.Unlock(ctx, sec(goodPass)); err != nil {
			return err
		}
		_, err = v.Put(ctx, "a", refreshBinding(), sec("what the stranger put there"), false)
		return err
	}
	// refresh gets one token after the other from a server of another process, and
	// says each that it was given.
	children["refresh"] = func(args []string) error {
		v, err := Open(args[0], cheap)
		if err != nil {
			return err
		}
		ctx := context.Background()
		if err := v.Unlock(ctx, sec(goodPass)); err != nil {
			return err
		}
		client, err := trusting([]byte(args[2]))
		if err != nil {
			return err
		}
		for {
			l, err := v.Lease(ctx, "a")
			if err != nil {
				return err
			}
			if err := l.Ready(ctx, Narrow{}, over(client, args[1])); err != nil {
				return err
			}
			h := headers{}
			if err := l.Attach(h, madeFor(refreshBinding())); err != nil {
				return err
			}
			fmt.Println(h["Authorization"][0])
			l.Close()
			v.tokens.drop(allTokens, errLocked())
		}
	}
}

// trusting is a client that trusts one certificate.
func trusting(ca []byte) (*http.Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}

// over sends an exchange to a server, whatever place is meant.
func over(client *http.Client, server string) Exchange {
	return func(ctx context.Context, r TokenRequest, c TokenCredential, read func(TokenAnswer) error) error {
		s := sent{TokenRequest: r, whole: string(r.Body)}
		if err := c.Attach(&s, madeAt(r.To)); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, r.Method, server+r.Path, strings.NewReader(s.whole))
		if err != nil {
			return err
		}
		req.Header = r.Header.Clone()
		if r.MediaType != "" {
			req.Header.Set("Content-Type", r.MediaType)
		}
		if s.authorization != "" {
			req.Header.Set("Authorization", s.authorization)
		}
		req.URL.RawQuery = r.Query
		resp, err := client.Do(req)
		if err != nil {
			return fault.New(fault.UpstreamUnavailable, err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, tokenAnswerBytes))
		if err != nil {
			return fault.New(fault.UpstreamUnavailable, err)
		}
		return read(TokenAnswer{Status: resp.StatusCode, Header: resp.Header, Body: body})
	}
}

// tokenIssuer replaces the refresh token with each request and takes the last one only.
// To the one before it gives its last answer again, as long as nobody has used that:
// it cannot know whether it arrived.
type tokenIssuer struct {
	mu sync.Mutex
	n  int // the last one that was given
}

func (i *tokenIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch got := r.PostFormValue("refresh_token"); {
	case got == refreshOf(i.n):
		i.n++
	case i.n > 0 && got == refreshOf(i.n-1):
	default:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	fmt.Fprintf(w, `{"access_token":"%s","token_type":"Bearer","refresh_token":"%s"}`, tokenOf(i.n), refreshOf(i.n))
}

// TestKillDuringRefresh: whoever was shown an access token has its refresh token on
// disk. A kill between the answer and the save loses at most the answer that nobody
// has seen.
func TestKillDuringRefresh(t *testing.T) {
	i := &tokenIssuer{}
	srv := httptest.NewTLSServer(i)
	defer srv.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	for range kills(15) {
		cmd := child(t, "refresh", os.Environ(), path, srv.URL, ca)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errText strings.Builder
		cmd.Stderr = &errText
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		shown := ""
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			shown = lines.Text()
		}
		time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			shown = lines.Text()
		}
		_ = cmd.Wait()
		if shown == "" || errText.Len() > 0 {
			t.Fatalf("the child was given no token: %s", errText.String())
		}
		got := stored(t, reopen(t, path, cheap), "a")
		i.mu.Lock()
		n := i.n
		i.mu.Unlock()
		switch {
		case got != refreshOf(n) && got != refreshOf(n-1):
			t.Fatalf("the file holds %s, the server has given %d", got, n)
		case got == refreshOf(n-1) && shown == "Bearer "+tokenOf(n):
			t.Fatalf("%s was given out before its refresh token was saved", shown)
		}
	}
}
