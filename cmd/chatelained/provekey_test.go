package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/crypto/argon2"

	"chatelaine/internal/client"
)

// derived are operator keys by what they were derived from. Homes that begin with
// the same state have the same salt, and a derivation costs a good part of a
// second under -race.
var derived sync.Map // string to func() []byte

func operatorKey(k client.KDF) []byte {
	derive := sync.OnceValue(func() []byte {
		return argon2.IDKey([]byte(operatorPass), k.Salt, k.Time, k.MemoryKiB, k.Threads, sha256.Size)
	})
	kept, _ := derived.LoadOrStore(fmt.Sprintf("%x %d %d %d", k.Salt, k.Time, k.MemoryKiB, k.Threads), derive)
	return kept.(func() []byte)()
}

// prove answers a challenge with the operator passphrase by the formula of
// docs/vault.md: HMAC-SHA256 under the operator's key. client.Challenge.Prove,
// which derives the key anew, is what the programs do, and TestStorm and
// TestSameUserAgentCannotDecide.
func prove(ch client.Challenge) (client.Proof, error) {
	i := slices.IndexFunc(ch.Proofs, func(k client.ProofKind) bool { return k.Kind == client.ProofPassphrase && k.KDF != nil })
	if i < 0 {
		return client.Proof{}, errors.New("the daemon takes no passphrase for this")
	}
	m := hmac.New(sha256.New, operatorKey(*ch.Proofs[i].KDF))
	m.Write([]byte("chatelaine/v1 proof\x00"))
	m.Write(ch.Challenge)
	return client.Proof{ChallengeID: ch.ID, Kind: client.ProofPassphrase, MAC: m.Sum(nil)}, nil
}
