package vault

import (
	"testing"
	"time"
)

// watchedBench is an open vault under a policy that is looked at with each use.
func watchedBench(b *testing.B) *Vault {
	b.Helper()
	v, _ := create(b, cheap)
	put(b, v, "a", planted, bearer())
	v.auto = autoLock{p: LockPolicy{Idle: time.Hour, Age: time.Hour, OnWake: true, Slept: Asleep}, due: make(chan struct{}, 1)}
	v.auto.begin()
	return v
}

// static is one binding of each kind that attaches what is in the vault.
func static(b testing.TB) map[string]struct {
	b    Binding
	text string
} {
	b.Helper()
	out := allKinds(b)
	for name, k := range out {
		if k.b.Exchanges() || kindRules[k.b.Kind].ssh {
			delete(out, name)
		}
	}
	plain := out["body"]
	plain.b = bearer()
	out["bearer"] = plain
	plain.b.Kind, plain.b.Header, plain.b.Prefix = KindHeader, "x-api-key", "Key "
	out["header"] = plain
	plain.b = bearer()
	plain.b.Kind, plain.b.Username = KindBasic, "chatelaine"
	out["basic"] = plain
	plain.b = bodyBinding("json", "/routing_key")
	out["body, JSON"] = plain
	return out
}

// BenchmarkAttach is what a credential costs on a call's path, for each kind that
// has nothing to ask for: two microseconds at most.
func BenchmarkAttach(b *testing.B) {
	for name, k := range static(b) {
		b.Run(name, func(b *testing.B) {
			v := watchedBench(b)
			put(b, v, "x", k.text, k.b)
			l, err := v.Lease(b.Context(), "x")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			made := madeFor(k.b)
			out := &sink{form: k.b.Param("form") != ""}
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Attach(out, made); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sink is a request that takes any credential, again and again.
type sink struct {
	form bool
	body [256]byte
}

func (*sink) SetHeader(_, _ string) error { return nil }
func (s *sink) Hole() (form, ok bool)     { return s.form, true }
func (s *sink) FillBody(write func(dst []byte) []byte) error {
	write(s.body[:0])
	return nil
}

// BenchmarkLease opens an identity for a call: unsealing, and what it searches
// answers for.
func BenchmarkLease(b *testing.B) {
	v := watchedBench(b)
	b.ReportAllocs()
	for b.Loop() {
		l, err := v.Lease(b.Context(), "a")
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

// BenchmarkUnlock is one try at the floor of the costs, which calibration raises
// to half a second and more.
func BenchmarkUnlock(b *testing.B) {
	v, _ := create(b, Options{KDF: floorKDF})
	for b.Loop() {
		if err := v.Unlock(b.Context(), sec(goodPass)); err != nil {
			b.Fatal(err)
		}
	}
}
