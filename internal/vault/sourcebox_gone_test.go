package vault

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// A fetch that began before the value was replaced gives it to nobody: a refresh
// token that is used up would cost the whole grant.
func TestFetchFromBeforeAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		hold := make(chan struct{})
		f.with(func() { f.hold = hold })
		got := make(chan string, 2)
		fetch := func() {
			s, err := v.sources.get(t.Context(), ref, true)
			if err != nil {
				t.Error(err)
			}
			s.Use(func(b []byte) { got <- string(b) })
		}
		go fetch()
		synctest.Wait()
		if err := v.storeAtSource(t.Context(), ref, sec(planted), sec(otherValue)); err != nil {
			t.Fatal(err)
		}
		go fetch()
		synctest.Wait()
		close(hold)
		for range 2 {
			if s := <-got; s != otherValue {
				t.Errorf("got %s, which was replaced", s)
			}
		}
		wantAttached(t, v, otherValue)
	})
}

// Who waits for a value while another credential is put waits a little longer.
func TestCredentialPutDuringAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		v.sources.forget(ref)
		hold := make(chan struct{})
		f.with(func() { f.hold = hold })
		done := make(chan struct{})
		go func() {
			defer close(done)
			if s, err := v.sources.get(t.Context(), ref, true); err != nil || !s.Equal(sec(planted)) {
				t.Errorf("got another value, or %v", err)
			}
		}()
		synctest.Wait()
		if err := v.PutSourceCredential(t.Context(), "bao", sec(managerCredential)); err != nil {
			t.Fatal(err)
		}
		close(hold)
		<-done
	})
}

// A value that is replaced again and again is no value, and nobody asks for ever.
func TestValueThatIsNeverThere(t *testing.T) {
	v, f := withSource(t)
	v.SetSources([]SourceSetup{{Source: fleeting{f, v}, Kind: "kv"}})
	v.sources.forget(ref)
	n := f.count()
	_, err := v.Lease(t.Context(), "bot")
	wantCode(t, err, fault.IdentityUnavailable)
	wantErr(t, err, ErrSourceUnavailable)
	if got := f.count() - n; got != maxGone {
		t.Errorf("asked %d times, want %d", got, maxGone)
	}
}

// fleeting is a source whose value is replaced during each fetch.
type fleeting struct {
	Source
	v *Vault
}

func (f fleeting) Fetch(ctx context.Context, reference string) (secret.Secret, error) {
	f.v.sources.forget(ref)
	return f.Source.Fetch(ctx, reference)
}

// A refresh token is fetched before each exchange; where that fails, calls that come
// meanwhile are no storm of programs either.
func TestFailureBeforeAnExchangeIsNotAskedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := create(t, cheap)
		f := &fakeSource{value: firstRefresh}
		v.SetSources([]SourceSetup{{Source: f, Kind: "kv"}})
		if _, err := v.PutIdentity(t.Context(), "a", refreshBinding(), secret.Secret{}, PutOptions{Source: ref}); err != nil {
			t.Fatal(err)
		}
		n := f.count()
		f.with(func() { f.err = fmt.Errorf("source bao: %w", ErrSourceUnavailable) })
		for range 50 {
			_, err := carried(t, v, "a", rotates().exchange)
			wantCode(t, err, fault.IdentityUnavailable)
			wantErr(t, err, ErrSourceUnavailable)
		}
		if got := f.count() - n; got != 1 {
			t.Errorf("asked %d times for 50 calls, want once", got)
		}
		f.with(func() { f.err = nil })
		time.Sleep(exchangeBackoff)
		wantCarried(t, v, "a", rotates().exchange, tokenOf(1))
	})
}

// The token of a signing endpoint that lies at a source is fetched anew where the
// endpoint refuses it.
func TestRefusedTokenOfASigningEndpointIsFetchedAnew(t *testing.T) {
	v, _ := create(t, cheap)
	f := &fakeSource{value: planted}
	v.SetSources([]SourceSetup{{Source: f, Kind: "kv"}})
	dir := t.TempDir()
	s := &sshd{address: "127.0.0.1:22", user: "deploy", hostKey: keygen(t, filepath.Join(dir, "host"))}
	if _, err := v.PutIdentity(t.Context(), "pass", s.asking(false), secret.Secret{}, PutOptions{Source: ref}); err != nil {
		t.Fatal(err)
	}
	l, err := v.Lease(t.Context(), "pass")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = l.SSHSigner(t.Context(), s.made(), "", says(jsonAnswer(http.StatusForbidden, `{"errors":["permission denied"]}`)).exchange)
	wantCode(t, err, fault.RemoteUnauthenticated)
	n := f.count()
	again, err := v.Lease(t.Context(), "pass")
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if f.count() != n+1 {
		t.Error("the refused token is still used")
	}
}
