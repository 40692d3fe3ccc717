package actions

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// keySet is one set of keys that answers may be signed with, as it was when the
// site file was loaded.
type keySet struct {
	set    *validate.KeySet
	digest string // "sha256:" and hex of the file
}

// maxKeyFile bounds a key file; validate bounds what is in it.
const maxKeyFile = 256 << 10

// readKeys reads the key sets. Each file holds public keys only: one that holds
// a private or a symmetric key is refused, whoever put it there.
func (s *site) readKeys(n *strictyaml.Node) {
	if n == nil || !s.f.Is(n, strictyaml.Mapping, "keys") {
		return
	}
	for _, m := range n.Members {
		if !targetName.MatchString(m.Key) {
			s.bad(m.KeyPos, "name", "small letters, digits, - _ and .", "%q is no name of a key set", m.Key)
		}
		if !s.f.Map(m.Value, "a key set", "jwks") {
			continue
		}
		if k := s.keyFile(s.f.Require(m.Value, "a key set", "jwks")); k != nil {
			s.keys[m.Key] = k
		}
	}
}

// keyFile reads one JWK Set beside the site file.
func (s *site) keyFile(n *strictyaml.Node) *keySet {
	name, ok := s.f.Text(n, "jwks")
	if !ok {
		return nil
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	b, err := readBounded(path, maxKeyFile)
	switch {
	case err != nil:
		s.bad(n.Pos, "keys", "", "the file %q cannot be read: %v", name, pathless(err))
		return nil
	case len(b) > maxKeyFile:
		s.bad(n.Pos, "keys", "", "the file %q has more than %d bytes", name, maxKeyFile)
		return nil
	}
	set, err := validate.ParseKeySet(b)
	if err != nil {
		s.bad(n.Pos, "keys", "a JWK Set of public keys: {\"keys\": [{\"kty\": \"EC\", \"crv\": \"P-256\", \"x\": …, \"y\": …, \"kid\": …}]}", "the file %q is no key set: %v", name, err)
		return nil
	}
	sum := sha256.Sum256(b)
	return &keySet{set, "sha256:" + hex.EncodeToString(sum[:])}
}

// keyDigests are the digests of all key files, for the site's own.
func (s *site) keyDigests() map[string]any {
	out := map[string]any{}
	for name, k := range s.keys {
		out[name] = k.digest
	}
	return out
}
