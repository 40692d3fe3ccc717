package vault

import (
	"bufio"
	"bytes"
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
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// What replaces a refresh token is on disk, in the same generation, before the
// access token is given out.
func TestRefreshTokenIsReplaced(t *testing.T) {
	v, path := create(t, cheap)
	gen := put(t, v, "a", firstRefresh, refreshBinding())
	e := rotates()
	for n := 1; n <= 3; n++ {
		wantCarried(t, v, "a", e.exchange, tokenOf(n))
		want := refreshOf(n - 1)
		if form, err := url.ParseQuery(e.last().whole); err != nil || form.Get("refresh_token") != want {
			t.Errorf("exchange %d sent %q", n, e.last().whole)
		}
		w := reopen(t, path, cheap)
		if got := stored(t, w, "a"); got != refreshOf(n) {
			t.Errorf("after exchange %d the file holds %s", n, got)
		}
		if now, err := w.Generation(t.Context(), "a"); err != nil || now != gen {
			t.Errorf("the generation is %d, %v; it was %d", now, err, gen)
		}
		v.tokens.drop(allTokens, errLocked())
	}
}

// The client's secret stays beside it; a server that replaces nothing changes
// nothing.
func TestRefreshWithClientSecret(t *testing.T) {
	v, path := create(t, cheap)
	b := tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": "c", "auth": "body"})
	put(t, v, "a", `{"client_secret":"`+planted+`","refresh_token":"`+firstRefresh+`"}`, b)
	e := rotates()
	wantCarried(t, v, "a", e.exchange, tokenOf(1))
	if got := stored(t, v, "a"); got != `{"refresh_token":"`+refreshOf(1)+`","client_secret":"`+planted+`"}` {
		t.Errorf("the file holds %s", got)
	}
	v.tokens.drop(allTokens, errLocked())
	before := read(t, path)
	same := says(jsonAnswer(200, withToken(`,"refresh_token":"`+refreshOf(1)+`"`)))
	wantCarried(t, v, "a", same.exchange, firstToken)
	v.tokens.drop(allTokens, errLocked())
	wantCarried(t, v, "a", grants().exchange, tokenOf(1))
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was written for nothing")
	}
}

// A lease that was taken before another call's exchange sends what that one got.
func TestOldLeaseSendsTheNewToken(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	old := tokenLease(t, v, "a")
	e := rotates()
	wantCarried(t, v, "a", e.exchange, tokenOf(1))
	v.tokens.drop(allTokens, errLocked())
	if err := old.Ready(t.Context(), Narrow{}, e.exchange); err != nil || !strings.Contains(e.last().whole, refreshOf(1)) {
		t.Errorf("sent %q, %v", e.last().whole, err)
	}
}

// breakSaves makes every save of the vault fail until the returned function is
// called.
func breakSaves(t *testing.T, path string) (mend func()) {
	t.Helper()
	good := read(t, path)
	write(t, path, append(bytes.Clone(good), 'x')) // another hand: nothing may be saved over it
	return func() { write(t, path, good) }
}

// Where it cannot be saved the call ends, nothing is attached, nothing more is sent,
// and it is saved before anything else.
func TestRefreshTokenThatCannotBeSaved(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	e := rotates()
	mend := breakSaves(t, path)
	for range 5 {
		_, err := carried(t, v, "a", e.exchange)
		wantCode(t, err, fault.IdentityUnavailable)
	}
	v.Refresh(t.Context(), e.exchange)
	if e.count() != 1 {
		t.Fatalf("%d exchanges; the second would have sent a token that is used up", e.count())
	}
	mend()
	wantCarried(t, v, "a", e.exchange, tokenOf(2))
	if !strings.Contains(e.last().whole, refreshOf(1)) {
		t.Errorf("sent %q", e.last().whole)
	}
	if got := stored(t, reopen(t, path, cheap), "a"); got != refreshOf(2) {
		t.Errorf("the file holds %s", got)
	}
}

// The daemon's own pass saves it too, without a call.
func TestRefreshSavesWhatWaits(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	mend := breakSaves(t, path)
	_, err := carried(t, v, "a", rotates().exchange)
	wantCode(t, err, fault.IdentityUnavailable)
	mend()
	v.Refresh(t.Context(), nil)
	if got := stored(t, reopen(t, path, cheap), "a"); got != refreshOf(1) || len(v.rotations.saving) > 0 {
		t.Errorf("the file holds %s", got)
	}
}

// A lock in the middle of an exchange loses nothing: what came is sealed until the
// unlock, and then saved before anything is sent.
func TestLockDuringAnExchange(t *testing.T) {
	inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
		e := rotates()
		x, open := slow(e)
		results := calls(t, v, 3, x)
		v.Lock("test")
		for _, r := range results() {
			wantCode(t, r.err, fault.VaultLocked)
		}
		open()
		synctest.Wait()
		r, ok := v.rotations.saving["a"]
		if !ok || len(r.sealed) == 0 || !r.used.IsZero() || !r.fresh.IsZero() || bytes.Contains(r.sealed, []byte("rt-0")) {
			t.Fatalf("it is not sealed: %d bytes, %v", len(r.sealed), ok)
		}
		unlock(t, v)
		wantCarried(t, v, "a", e.exchange, tokenOf(2))
		if !strings.Contains(e.last().whole, refreshOf(1)) || stored(t, v, "a") != refreshOf(2) {
			t.Errorf("sent %q", e.last().whole)
		}
	})
}

// So does a lock while a save is still to be made.
func TestLockBeforeTheSave(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	mend := breakSaves(t, path)
	_, err := carried(t, v, "a", rotates().exchange)
	wantCode(t, err, fault.IdentityUnavailable)
	waiting := v.rotations.saving["a"]
	v.Lock("test")
	if !waiting.fresh.IsZero() || !waiting.used.IsZero() {
		t.Error("a refresh token is in clear while the vault is locked")
	}
	mend()
	unlock(t, v)
	v.Refresh(t.Context(), nil)
	if got := stored(t, v, "a"); got != refreshOf(1) {
		t.Errorf("the file holds %s", got)
	}
}

// What a person does meanwhile goes before: a new secret is not overwritten, a
// deleted identity does not come back; the same secret in another generation is.
func TestPersonGoesBeforeTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(t *testing.T, v *Vault)
		want string
	}{
		"put": {func(t *testing.T, v *Vault) { put(t, v, "a", "another refresh token", refreshBinding()) }, "another refresh token"},
		"delete": {func(t *testing.T, v *Vault) {
			if err := v.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"rotate the data key": {func(t *testing.T, v *Vault) {
			if _, err := v.RotateKey(t.Context(), "", sec(goodPass)); err != nil {
				t.Fatal(err)
			}
		}, refreshOf(1)},
		"put the same": {func(t *testing.T, v *Vault) { put(t, v, "a", firstRefresh, refreshBinding()) }, refreshOf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
				x, open := slow(rotates())
				results := calls(t, v, 1, x)
				c.act(t, v)
				wantCode(t, results()[0].err, fault.IdentityUnavailable)
				open()
				synctest.Wait()
				if len(v.rotations.saving) > 0 {
					t.Error("something still waits")
				}
				if c.want == "" {
					if len(v.List()) > 0 {
						t.Error("it came back")
					}
					return
				}
				if got := stored(t, v, "a"); got != c.want {
					t.Errorf("the vault holds %s, want %s", got, c.want)
				}
			})
		})
	}
}

// No two exchanges of one refresh token run at once, also across a lock.
func TestExchangesOfOneSecretAreInTurn(t *testing.T) {
	inBubble(t, refreshBinding(), firstRefresh, func(t *testing.T, v *Vault) {
		e := rotates()
		x, open := slow(e)
		first := calls(t, v, 1, x)
		v.Lock("test")
		unlock(t, v)
		second := calls(t, v, 1, x)
		open()
		open()
		wantCode(t, first()[0].err, fault.VaultLocked)
		if r := second()[0]; r.err != nil || r.carried != "Bearer "+tokenOf(2) || !strings.Contains(e.last().whole, refreshOf(1)) {
			t.Errorf("got %q, %v; sent %q", r.carried, r.err, e.last().whole)
		}
	})
}

// A keychain and a source keep it as the file does.
func TestRefreshTokenElsewhere(t *testing.T) {
	o := cheap
	o.Backend = newMemory()
	v, path := create(t, o)
	put(t, v, "a", firstRefresh, refreshBinding())
	wantCarried(t, v, "a", rotates().exchange, tokenOf(1))
	w := reopen(t, path, o)
	cur, err := w.current()
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.unsealItem(t.Context(), cur, cur.contents.items["a"])
	if err != nil || !s.Equal(sec(refreshOf(1))) {
		t.Errorf("the keychain holds another one, %v", err)
	}
	v.tokens.drop(allTokens, errLocked())
	o.Backend.(*memory).setFail(ErrKeychainUnavailable)
	_, err = carried(t, v, "a", rotates().exchange)
	wantCode(t, err, fault.IdentityUnavailable)
}

// A secret on trial is replaced too; what is put afterwards is the one that still
// works.
func TestTrialOfARefreshToken(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", "the refresh token of before", refreshBinding())
	given := sec("the refresh token on trial")
	l, err := v.Trial(t.Context(), "a", given, false)
	if err != nil {
		t.Fatal(err)
	}
	e := rotates()
	for n := 1; n <= 2; n++ {
		if err := l.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
			t.Fatal(err)
		}
		h := headers{}
		if err := l.Attach(h, madeFor(refreshBinding())); err != nil || h["Authorization"][0] != "Bearer "+tokenOf(n) {
			t.Errorf("attached %v, %v", h, err)
		}
		l.Rejected()
	}
	l.Close()
	if got := stored(t, v, "a"); got != "the refresh token of before" {
		t.Errorf("the trial was stored: %s", got)
	}
	if len(v.tokens.entries) > 0 {
		t.Error("the token of a trial is kept with the others")
	}
	if _, err := v.Put(t.Context(), "a", refreshBinding(), given, false); err != nil || stored(t, v, "a") != refreshOf(2) {
		t.Errorf("the put stored %s, %v", stored(t, v, "a"), err)
	}
	put(t, v, "a", "quite another refresh token", refreshBinding())
	if got := stored(t, v, "a"); got != "quite another refresh token" {
		t.Errorf("the put stored %s", got)
	}
}

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
