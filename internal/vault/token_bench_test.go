package vault

import (
	"context"
	"errors"
	"testing"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// BenchmarkAttachToken is BenchmarkAttach for a kind that is exchanged.
func BenchmarkAttachToken(b *testing.B) {
	v := watchedBench(b)
	put(b, v, "token", clientSecret, clientBinding())
	l, err := v.Lease(b.Context(), "token")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if err := l.Ready(b.Context(), Narrow{}, grants().exchange); err != nil {
		b.Fatal(err)
	}
	made, out := madeFor(clientBinding()), &sink{}
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Attach(out, made); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is all that one call does here: a lease, the look whether its token is
// still good, and the credential.
func BenchmarkCall(b *testing.B) {
	v := watchedBench(b)
	put(b, v, "static", planted, bearer())
	put(b, v, "token", clientSecret, clientBinding())
	e := grants()
	for _, name := range []string{"static", "token"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l, err := v.Lease(b.Context(), name)
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Ready(b.Context(), Narrow{}, e.exchange); err != nil {
					b.Fatal(err)
				}
				if err := l.Attach(&sink{}, madeFor(bearer())); err != nil {
					b.Fatal(err)
				}
				l.Close()
			}
		})
	}
	if e.count() != 1 {
		b.Errorf("%d exchanges", e.count())
	}
}

// A token that is there costs no more than a static secret: no secret is unsealed for
// it, and the search is made ready once for all calls. Counted in allocations, which
// do not depend on how busy the machine is.
func TestTokenCostsNoMore(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", planted, bearer())
	put(t, v, "token", clientSecret, clientBinding())
	e := grants()
	use := func(name string, made Made) float64 {
		return testing.AllocsPerRun(50, func() {
			l, err := v.Lease(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := l.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
				t.Fatal(err)
			}
			if err := l.Attach(headers{}, made); err != nil {
				t.Fatal(err)
			}
		})
	}
	static, token := use("a", madeFor(bearer())), use("token", madeFor(clientBinding()))
	if token > static {
		t.Errorf("%g allocations for a token, %g for a static secret", token, static)
	}
}

// keeper is a source that takes new values.
type keeper struct {
	value secret.Secret
	fail  error
}

func (k *keeper) Name() string       { return "manager" }
func (k *keeper) Check(string) error { return nil }

func (k *keeper) Fetch(context.Context, string) (secret.Secret, error) { return copied(k.value), nil }

func (k *keeper) Store(_ context.Context, _ string, old, value secret.Secret) error {
	switch {
	case k.fail != nil:
		return k.fail
	case k.value.Equal(value):
		return nil
	case !k.value.Equal(old):
		return ErrSourceChanged
	}
	k.value = copied(value)
	return nil
}

// A refresh token that lies at a source is replaced there.
func TestRefreshTokenAtASource(t *testing.T) {
	k := &keeper{value: sec(firstRefresh)}
	v, _ := create(t, cheap)
	v.SetSources([]SourceSetup{{Source: k, Kind: "test", Keep: time.Hour}})
	if _, err := v.PutIdentity(t.Context(), "a", refreshBinding(), secret.Secret{}, PutOptions{Source: "manager:entry"}); err != nil {
		t.Fatal(err)
	}
	e := rotates()
	wantCarried(t, v, "a", e.exchange, tokenOf(1))
	if !k.value.Equal(sec(refreshOf(1))) {
		t.Error("the source holds another one")
	}
	v.tokens.drop(allTokens, errLocked())
	wantCarried(t, v, "a", e.exchange, tokenOf(2))

	// Another daemon was faster: its value is sent the next time.
	v.tokens.drop(allTokens, errLocked())
	slower := &endpoint{answer: func(n int, s sent) (TokenAnswer, error) {
		k.value = sec("the refresh token of another daemon")
		return e.answer(n, s)
	}}
	wantCarried(t, v, "a", slower.exchange, tokenOf(1))
	if !k.value.Equal(sec("the refresh token of another daemon")) || len(v.rotations.saving) > 0 {
		t.Error("its value was written over")
	}

	// One that takes nothing: the call ends, and nothing more is sent.
	v.tokens.drop(allTokens, errLocked())
	k.fail = errors.Join(ErrSourceDenied)
	n := e.count()
	for range 3 {
		_, err := carried(t, v, "a", e.exchange)
		wantCode(t, err, fault.IdentityUnavailable)
	}
	if e.count() > n+1 {
		t.Errorf("%d exchanges", e.count()-n)
	}
}
