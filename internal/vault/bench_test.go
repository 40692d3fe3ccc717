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

// BenchmarkAttach is what a credential costs on a call's path.
func BenchmarkAttach(b *testing.B) {
	v := watchedBench(b)
	l, err := v.Lease(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	made := madeFor(bearer())
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Attach(headers{}, made); err != nil {
			b.Fatal(err)
		}
	}
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
