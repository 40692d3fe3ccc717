package vault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// fakeSource answers what the test says. It counts, and can be held up.
type fakeSource struct {
	mu     sync.Mutex
	value  string
	err    error
	asked  int
	tended int
	drops  int
	hold   chan struct{} // nil: answers at once
}

func (*fakeSource) Name() string { return "bao" }

func (*fakeSource) Check(reference string) error {
	if strings.Contains(reference, "bad") {
		return fmt.Errorf("source bao: %w: it is bad", ErrBadReference)
	}
	return CheckReferenceText(reference)
}

func (f *fakeSource) Fetch(context.Context, string) (secret.Secret, error) {
	f.mu.Lock()
	f.asked++
	value, err, hold := f.value, f.err, f.hold
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return secret.Secret{}, err
	}
	return sec(value), nil
}

func (f *fakeSource) Store(_ context.Context, _ string, old, value secret.Secret) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !sec(f.value).Equal(old) {
		return fmt.Errorf("source bao: %w", ErrSourceChanged)
	}
	value.Use(func(b []byte) { f.value = string(b) })
	return nil
}

func (f *fakeSource) Tend(context.Context) { f.with(func() { f.tended++ }) }
func (f *fakeSource) Drop()                { f.with(func() { f.drops++ }) }

func (f *fakeSource) with(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fakeSource) count() (n int) {
	f.with(func() { n = f.asked })
	return n
}

const (
	otherValue = "Yr8-the-next-value-there-0Au"
	ref        = "bao:secret/deploy/bot#token"
)

// withSource is an open vault with one identity whose secret lies at a source.
func withSource(t testing.TB) (*Vault, *fakeSource) {
	t.Helper()
	v, _ := create(t, cheap)
	f := &fakeSource{value: planted}
	v.SetSources([]SourceSetup{{Source: f, Kind: "kv", Place: "https://bao.example, approle", Credential: true}})
	if _, err := v.PutIdentity(t.Context(), "bot", bearer(), secret.Secret{}, PutOptions{Source: ref}); err != nil {
		t.Fatal(err)
	}
	return v, f
}

func wantAttached(t testing.TB, v *Vault, want string) {
	t.Helper()
	if got := attached(t, v, "bot", madeFor(bearer())); got != "Bearer "+want {
		t.Errorf("another credential was attached than %s", want[:3])
	}
}

func TestSecretAtASourceIsFetchedAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		if n := f.count(); n != 1 {
			t.Errorf("asked %d times by the put, want once", n)
		}
		gen, err := v.Generation(t.Context(), "bot")
		if err != nil {
			t.Fatal(err)
		}
		wantAttached(t, v, planted)
		wantAttached(t, v, planted)
		if n := f.count(); n != 1 {
			t.Errorf("asked %d times while the value is kept, want once", n)
		}
		f.with(func() { f.value = otherValue })
		time.Sleep(DefaultSourceKeep)
		wantAttached(t, v, otherValue)
		if now, _ := v.Generation(t.Context(), "bot"); now != gen {
			t.Errorf("the generation went from %d to %d with the value", gen, now)
		}
		info := v.List()[0]
		if info.Source != ref {
			t.Errorf("the source is shown as %q", info.Source)
		}
	})
}

func TestValueInUseIsRenewedOffTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go v.WatchSources(ctx)
		wantAttached(t, v, planted)
		f.with(func() { f.value = otherValue })
		time.Sleep(DefaultSourceKeep - time.Second) // within the last quarter of its life
		synctest.Wait()
		if n := f.count(); n != 2 {
			t.Fatalf("asked %d times, want the put and one renewal", n)
		}
		wantAttached(t, v, otherValue)
		if n := f.count(); n != 2 {
			t.Error("a call asked the source although the value was renewed")
		}
		time.Sleep(DefaultSourceKeep) // that use renews it once more
		synctest.Wait()
		n := f.count()
		time.Sleep(time.Hour)
		synctest.Wait()
		if more := f.count() - n; more > 1 {
			t.Errorf("a value that nobody uses was fetched %d times", more)
		}
		v.sources.mu.Lock()
		kept := len(v.sources.kept)
		v.sources.mu.Unlock()
		if kept != 0 {
			t.Error("a value that nobody uses is still in memory")
		}
		if f.tended == 0 {
			t.Error("the source was never tended")
		}
		cancel()
		synctest.Wait()
	})
}

func TestRenewalThatFailsLeavesTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		wantAttached(t, v, planted)
		f.with(func() { f.err = fmt.Errorf("source bao: %w", ErrSourceLocked) })
		time.Sleep(DefaultSourceKeep - time.Second)
		v.tendSources(t.Context())
		wantAttached(t, v, planted)
		if i := v.Sources()[0]; i.Failure != "locked" || i.Failed.IsZero() {
			t.Errorf("status says %q", i.Failure)
		}
		time.Sleep(2 * time.Second)
		_, err := v.Lease(t.Context(), "bot")
		wantCode(t, err, fault.IdentityUnavailable)
		wantErr(t, err, ErrSourceLocked)
		f.with(func() { f.err = nil })
		time.Sleep(failedFor)
		wantAttached(t, v, planted)
		if i := v.Sources()[0]; i.Failure != "" || i.Fetched.IsZero() {
			t.Errorf("status still says %q", i.Failure)
		}
	})
}

// A failure is the answer for a moment, so that a storm of calls is no storm of
// programs; a put asks in any case.
func TestFailureIsNotAskedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		time.Sleep(DefaultSourceKeep)
		f.with(func() { f.err = fmt.Errorf("source bao: %w", ErrSourceUnavailable) })
		n := f.count()
		for range 50 {
			_, err := v.Lease(t.Context(), "bot")
			wantCode(t, err, fault.IdentityUnavailable)
		}
		if got := f.count() - n; got != 1 {
			t.Errorf("asked %d times for 50 calls, want once", got)
		}
		_, err := v.PutIdentity(t.Context(), "bot", bearer(), secret.Secret{}, PutOptions{Source: ref})
		wantErr(t, err, ErrSourceUnavailable)
		if got := f.count() - n; got != 2 {
			t.Errorf("a put did not ask")
		}
	})
}

func TestOneFetchForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		time.Sleep(DefaultSourceKeep)
		f.with(func() { f.hold = make(chan struct{}) })
		n := f.count()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { wantAttached(t, v, planted) })
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := v.Lease(ctx, "bot")
			gone <- err
		}()
		synctest.Wait()
		cancel() // one of those who wait goes; the others are served all the same
		wantCode(t, <-gone, fault.IdentityUnavailable)
		close(f.hold)
		wg.Wait()
		if got := f.count() - n; got != 1 {
			t.Errorf("asked %d times, want once", got)
		}
	})
}

func TestLockDropsWhatWasFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		wantAttached(t, v, planted)
		v.sources.mu.Lock()
		value := v.sources.kept[ref].value
		v.sources.mu.Unlock()
		v.Lock("the test")
		if !value.IsZero() {
			t.Error("the value is in memory after the lock")
		}
		if f.drops == 0 {
			t.Error("the source was not told to drop its login")
		}
		n := f.count()
		_, err := v.Lease(t.Context(), "bot")
		wantCode(t, err, fault.VaultLocked)
		v.tendSources(t.Context())
		if f.count() != n || f.tended != 0 {
			t.Error("the source was asked while the vault was locked")
		}
		unlock(t, v)
		wantAttached(t, v, planted)
		if f.count() != n+1 {
			t.Error("the value was not fetched after the unlock")
		}
	})
}

// A fetch that is under way at a lock is nobody's any more, whenever it ends.
func TestLockDuringAFetchKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := withSource(t)
		time.Sleep(DefaultSourceKeep)
		f.with(func() { f.hold = make(chan struct{}) })
		got := make(chan error, 1)
		go func() {
			_, err := v.Lease(t.Context(), "bot")
			got <- err
		}()
		synctest.Wait()
		v.Lock("the test")
		close(f.hold)
		wantCode(t, <-got, fault.VaultLocked)
		v.sources.mu.Lock()
		defer v.sources.mu.Unlock()
		if len(v.sources.kept) != 0 {
			t.Error("a value was kept after the lock")
		}
	})
}

// What is fetched obeys the rules of what is put.
func TestFetchedValueObeysTheRules(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		short bool
		bad   bool
	}{
		"good": {planted, false, false}, "short": {"short-one", false, true}, "short and meant": {"short-one", true, false},
		"with a line end": {planted + "\nX-Evil: 1", true, true}, "with a control character": {planted + "\x01", true, true},
		"too long": {strings.Repeat("x", maxSecret+1), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := create(t, cheap)
			f := &fakeSource{value: c.value}
			v.SetSources([]SourceSetup{{Source: f, Kind: "kv"}})
			_, err := v.PutIdentity(t.Context(), "bot", bearer(), secret.Secret{}, PutOptions{Source: ref, Short: c.short})
			if !c.bad {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantErr(t, err, ErrBadIdentity)
			if len(v.List()) != 0 {
				t.Error("it was stored all the same")
			}
			// The value may also become bad later.
			f.with(func() { f.value = planted })
			if _, err := v.PutIdentity(t.Context(), "bot", bearer(), secret.Secret{}, PutOptions{Source: ref}); err != nil {
				t.Fatal(err)
			}
			f.with(func() { f.value = c.value })
			v.sources.forget(ref)
			if c.short { // that is no excuse now
				_, err = v.Lease(t.Context(), "bot")
				wantCode(t, err, fault.IdentityUnavailable)
			}
		})
	}
}

func TestSourcesThatAreNotThere(t *testing.T) {
	v, _ := withSource(t)
	for text, want := range map[string]error{
		"pass:deploy/bot": ErrNoSource, "bao:bad": ErrBadReference, "bao:-x": ErrBadReference, "bao:": ErrBadReference, "bao": ErrBadReference,
		"Bao:x": ErrBadReference, ":x": ErrBadReference, planted: ErrBadReference, "bao:a\nb": ErrBadReference,
	} {
		wantErr(t, v.CheckSource(text), want)
		_, err := v.PutIdentity(t.Context(), "other", bearer(), secret.Secret{}, PutOptions{Source: text})
		if err == nil {
			t.Errorf("%q was taken", text)
		}
		refuseLeak(t, err)
	}
	// A source that is gone from the configuration leaves its identities standing.
	v.SetSources(nil)
	_, err := v.Lease(t.Context(), "bot")
	wantCode(t, err, fault.IdentityUnavailable)
	wantErr(t, err, ErrNoSource)
}

func TestTrialOfASecretAtASource(t *testing.T) {
	v, f := withSource(t)
	f.with(func() { f.value = otherValue })
	l, err := v.TrialFrom(t.Context(), "bot", "bao:secret/next#token", false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n := len(l.Scan([]byte("echo " + otherValue))); n != 1 {
		t.Errorf("the trial's secret is found %d times", n)
	}
	f.with(func() { f.err = fmt.Errorf("source bao: %w", ErrSourceDenied) })
	_, err = v.TrialFrom(t.Context(), "bot", "bao:secret/next#token", false)
	wantErr(t, err, ErrSourceDenied)
}

func TestStoreAtASource(t *testing.T) {
	v, f := withSource(t)
	wantAttached(t, v, planted)
	if err := v.storeAtSource(t.Context(), ref, sec(planted), sec(otherValue)); err != nil {
		t.Fatal(err)
	}
	wantAttached(t, v, otherValue)
	wantErr(t, v.storeAtSource(t.Context(), ref, sec(planted), sec("mine")), ErrSourceChanged)
	n := f.count()
	wantAttached(t, v, otherValue) // what the other daemon wrote is fetched
	if f.count() != n+1 {
		t.Error("the value was not fetched after another daemon's")
	}
	v.SetSources([]SourceSetup{{Source: struct{ Source }{f}, Kind: "exec"}})
	wantErr(t, v.storeAtSource(t.Context(), ref, sec(planted), sec("mine")), ErrSourceDenied)
}

// A secret that the target refuses is fetched anew by the next call, and only then.
func TestRefusedSecretIsFetchedAnew(t *testing.T) {
	v, f := withSource(t)
	old, err := v.Lease(t.Context(), "bot")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	n := f.count()
	f.with(func() { f.value = otherValue })
	old.Rejected()
	wantAttached(t, v, otherValue)
	old.Rejected() // a late word about the old one does not cost the new one
	wantAttached(t, v, otherValue)
	if got := f.count() - n; got != 1 {
		t.Errorf("fetched %d times, want once", got)
	}
}

func TestKindsOfFailureAreAClosedList(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range sourceKinds {
		if got := SourceKind(fmt.Errorf("source x: %w: text", k.err)); got != k.word || seen[got] {
			t.Errorf("%v is %q", k.err, got)
		}
		seen[k.word] = true
	}
	if SourceKind(nil) != "" || SourceKind(errors.New("anything")) != "unavailable" || IsSource(errors.New("anything")) {
		t.Error("other errors are sorted wrongly")
	}
}

func FuzzSplitSource(f *testing.F) {
	for _, seed := range []string{"", "bao:secret/a#f", "pass:deploy/bot", "a:b:c", ":x", "A:x", "x:-y", "x:\n", "x:\xff", planted} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, reference, err := SplitSource(text)
		if err != nil {
			if !errors.Is(err, ErrBadReference) {
				t.Errorf("another error: %v", err)
			}
			return
		}
		if name+":"+reference != text || !ValidSourceName(name) || reference[0] == '-' || len(text) > maxSource || checkSource(text) != nil {
			t.Errorf("%q was taken as %q and %q", text, name, reference)
		}
	})
}
