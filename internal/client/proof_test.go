package client

import (
	"encoding/hex"
	"strings"
	"testing"
)

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func vectorKDF() KDF {
	return KDF{Name: "argon2id", Salt: counting(16), Time: 1, MemoryKiB: 8192, Threads: 1}
}

// TestProofVectors publishes the numbers that the vault's own verifier must
// meet; both sides hold a copy, because the client never links the vault.
func TestProofVectors(t *testing.T) {
	vectors := []struct {
		name, passphrase string
		kdf              KDF
		want             string
	}{
		{"base", "correct horse battery staple", vectorKDF(), "91cc68d8a0b581e675a65bf008b088f63851fd98735cf9c95f1e04c2989a2dcc"},
		{"two threads, twice", "correct horse battery staple", KDF{Name: "argon2id", Salt: counting(16), Time: 2, MemoryKiB: 16384, Threads: 2}, "c5eeaf648470e65ca7055e88ed97266e448a4f7f01df59e03da3cf4ea8ada0cc"},
		{"not ASCII", "açık kapı — दरवाज़ा", vectorKDF(), "3690f8cb24eb044dea7d722908c905a3bd45798d0392dcf430765743cbb55d26"},
	}
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			mac, err := ProofMAC([]byte(v.passphrase), v.kdf, counting(32))
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(mac); got != v.want {
				t.Fatalf("mac %s, want %s", got, v.want)
			}
		})
	}
}

// TestProofVectorOfTheVault is the number that the vault's own test holds. Its
// costs are below what a client takes, so it goes to the bare formula.
func TestProofVectorOfTheVault(t *testing.T) {
	k := KDF{Name: "argon2id", Salt: []byte("0123456789abcdef"), Time: 1, MemoryKiB: 64, Threads: 1}
	const want = "8c1cf09b0aaba78ee1d17f827eeae73f7d8fe1ac57d0e099187f4cb62c0639dd"
	if got := hex.EncodeToString(k.mac([]byte("operator passphrase"), counting(32))); got != want {
		t.Errorf("mac %s, want %s", got, want)
	}
	if _, err := ProofMAC([]byte("operator passphrase"), k, counting(32)); err == nil {
		t.Error("costs below the bounds were taken")
	}
}

func TestProofRefusesCosts(t *testing.T) {
	cases := []struct {
		name string
		edit func(*KDF)
		want string
	}{
		{"other kdf", func(k *KDF) { k.Name = "scrypt" }, "does not know"},
		{"no salt", func(k *KDF) { k.Salt = nil }, "salt"},
		{"huge salt", func(k *KDF) { k.Salt = counting(65) }, "salt"},
		{"no time", func(k *KDF) { k.Time = 0 }, "time 0"},
		{"absurd time", func(k *KDF) { k.Time = 1 << 30 }, "time"},
		{"cheap memory", func(k *KDF) { k.MemoryKiB = 8 }, "memory"},
		{"absurd memory", func(k *KDF) { k.MemoryKiB = 1<<32 - 1 }, "memory"},
		{"no threads", func(k *KDF) { k.Threads = 0 }, "threads"},
		{"absurd threads", func(k *KDF) { k.Threads = 255 }, "threads"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := vectorKDF()
			c.edit(&k)
			_, err := ProofMAC([]byte("planted-passphrase"), k, counting(32))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), "planted") {
				t.Fatalf("the error holds the passphrase: %v", err)
			}
		})
	}
	if _, err := ProofMAC(nil, vectorKDF(), counting(32)); err == nil {
		t.Error("an empty passphrase was taken")
	}
	if _, err := ProofMAC([]byte("x"), vectorKDF(), counting(31)); err == nil {
		t.Error("a short challenge was taken")
	}
}

func TestChallengePicksPassphrase(t *testing.T) {
	kdf := vectorKDF()
	c := Challenge{ID: "chl_1", Challenge: counting(32), Proofs: []ProofKind{{Kind: "passkey"}, {Kind: "passphrase", KDF: &kdf}}}
	p, err := c.Prove([]byte("correct horse battery staple"))
	if err != nil || p.Kind != "passphrase" || p.ChallengeID != "chl_1" || len(p.MAC) != 32 {
		t.Fatalf("proof %+v, error %v", p, err)
	}
	c.Proofs = c.Proofs[:1]
	if _, err := c.Prove([]byte("x")); err == nil {
		t.Error("a challenge without a passphrase was answered")
	}
}
