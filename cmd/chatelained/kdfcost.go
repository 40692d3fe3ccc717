package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"chatelaine/internal/vault"
)

// kdfCost is what an operator asks one guess of a passphrase to cost. The zero
// value leaves it to the vault, which measures this machine.
type kdfCost struct {
	passes, memoryMiB uint32
	threads           uint8
}

func (k *kdfCost) flags(f *pflag.FlagSet) {
	f.Uint32Var(&k.passes, "passes", 0, "argon2id passes, at least 3; without cost flags this machine is measured")
	f.Uint32Var(&k.memoryMiB, "memory-mib", 0, "argon2id memory in MiB, at least 64")
	f.Uint8Var(&k.threads, "threads", 0, "argon2id threads, at least 4")
}

// leastKDF fills in what was left out when one cost was given; package vault
// refuses less (RFC 9106, section 4).
var leastKDF = vault.KDFParams{Time: 3, MemoryKiB: 64 << 10, Threads: 4}

// params is the cost as the vault takes it, or a mistake of the command line,
// found before anything is read or written.
func (k kdfCost) params() (vault.KDFParams, error) {
	if k == (kdfCost{}) {
		return vault.KDFParams{}, nil
	}
	p := leastKDF
	if k.passes > 0 {
		p.Time = k.passes
	}
	if k.memoryMiB > 1<<20 {
		return p, usageError{fmt.Errorf("--memory-mib %d is more than any machine has", k.memoryMiB)}
	}
	if k.memoryMiB > 0 {
		p.MemoryKiB = k.memoryMiB << 10
	}
	if k.threads > 0 {
		p.Threads = k.threads
	}
	if err := p.Check(); err != nil {
		return p, usageError{err}
	}
	return p, nil
}
