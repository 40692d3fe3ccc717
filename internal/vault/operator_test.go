package vault

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
)

// clientMAC makes a proof as a client does, from the parameters alone.
func clientMAC(pass string, p ProofParams, challenge []byte) []byte {
	key := argon2.IDKey([]byte(pass), p.Salt, p.Time, p.MemoryKiB, p.Threads, 32)
	h := hmac.New(sha256.New, key)
	h.Write([]byte("chatelaine/v1 proof\x00"))
	h.Write(challenge)
	return h.Sum(nil)
}

// TestProofVector fixes the bytes of a proof: clients of any language must
// arrive at them.
func TestProofVector(t *testing.T) {
	p := ProofParams{KDF: "argon2id", Salt: []byte("0123456789abcdef"), Time: 1, MemoryKiB: 64, Threads: 1}
	challenge := make([]byte, 32)
	for i := range challenge {
		challenge[i] = byte(i)
	}
	const want = "8c1cf09b0aaba78ee1d17f827eeae73f7d8fe1ac57d0e099187f4cb62c0639dd"
	if got := hex.EncodeToString(clientMAC("operator passphrase", p, challenge)); got != want {
		t.Errorf("got %s", got)
	}
	v, _ := create(t, cheap)
	l := lock{kdf: KDFParams{p.Time, p.MemoryKiB, p.Threads}, salt: [16]byte(p.Salt)}
	c := v.contents.clone()
	c.operator = &operator{lock: l, key: l.key(sec("operator passphrase"))}
	v.contents = c
	sum, _ := hex.DecodeString(want)
	if err := v.CheckProof(challenge, sum); err != nil {
		t.Error(err)
	}
}

func TestProofs(t *testing.T) {
	v, path := create(t, cheap)
	_, err := v.ProofParams()
	wantErr(t, err, ErrNoOperator)
	wantErr(t, v.CheckProof([]byte("c"), nil), ErrNoOperator)
	wantErr(t, v.SetOperatorPassphrase(sec(goodPass)), ErrSamePassphrase)
	wantErr(t, v.SetOperatorPassphrase(sec("")), ErrBadPassphrase)
	if err := v.SetOperatorPassphrase(sec("operator passphrase")); err != nil {
		t.Fatal(err)
	}
	v = reopen(t, path, cheap)
	p, err := v.ProofParams()
	if err != nil || p.KDF != "argon2id" || len(p.Salt) != 16 {
		t.Fatalf("got %+v, %v", p, err)
	}
	challenge := []byte("thirty-two bytes of a challenge!")
	good := clientMAC("operator passphrase", p, challenge)
	for range 3 {
		if err := v.CheckProof(challenge, good); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ challenge, sum []byte }{
		"another challenge":      {[]byte("another"), good},
		"another passphrase":     {challenge, clientMAC("Operator passphrase", p, challenge)},
		"the vault's passphrase": {challenge, clientMAC(goodPass, p, challenge)},
		"cut":                    {challenge, good[:31]},
		"nothing":                {challenge, nil},
		"longer":                 {challenge, append(good[:32:32], 0)},
	} {
		v.proofs = limiter{}
		err := v.CheckProof(c.challenge, c.sum)
		if err == nil {
			t.Errorf("%s is taken", name)
		}
		wantErr(t, err, ErrProofRefused)
	}
	v.proofs = limiter{}
	if err := v.SetOperatorPassphrase(sec("a new one of them")); err != nil {
		t.Fatal(err)
	}
	q, _ := v.ProofParams()
	if string(q.Salt) == string(p.Salt) {
		t.Error("the salt is used again")
	}
	wantErr(t, v.CheckProof(challenge, good), ErrProofRefused)
	v.proofs = limiter{}
	if err := v.CheckProof(challenge, clientMAC("a new one of them", q, challenge)); err != nil {
		t.Error(err)
	}
}

func TestOperatorDerivationHasAFloor(t *testing.T) {
	v, _ := create(t, cheap)
	v.o.DangerouslyWeakKDF = false
	wantErr(t, v.SetOperatorPassphrase(sec("operator passphrase")), ErrWeakKDF)
	v.o.KDF = KDFParams{}
	if err := v.SetOperatorPassphrase(sec("operator passphrase")); err != nil {
		t.Fatal(err)
	}
	if p, _ := v.ProofParams(); p.Time != 3 || p.MemoryKiB != 65536 || p.Threads != 4 {
		t.Errorf("got %+v", p)
	}
}

func TestProofErrorSaysHowLong(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "in 1 s", 1500 * time.Millisecond: "in 2 s", time.Minute: "in 60 s"} {
		if got := (&ProofError{RetryAfter: d}).Error(); !strings.Contains(got, want) {
			t.Errorf("got %q", got)
		}
	}
}
