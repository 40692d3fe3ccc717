package actions

import (
	"maps"
	"slices"

	"chatelaine/internal/validate"
)

// Set is everything that was loaded together: contracts, targets, identities.
// It never changes; a reload makes a new one.
type Set struct {
	contracts  map[string]*Contract
	targets    map[string]*Target
	identities map[string]*IdentitySpec
	lists      map[string]*list
	keys       map[string]*keySet
	digest     [32]byte
}

// list is one of the operator's lists: a name that an agent may say, and what
// it stands for.
type list struct {
	name    string
	entries map[string]listEntry
}

type listEntry struct {
	target string
	with   map[string]any
}

// Digest covers every contract and the whole site file.
func (s *Set) Digest() [32]byte { return s.digest }

// Contracts returns all contracts by action name.
func (s *Set) Contracts() []*Contract { return sortedValues(s.contracts) }

// Contract returns the contract of an action.
func (s *Set) Contract(action string) (*Contract, bool) {
	c, ok := s.contracts[action]
	return c, ok
}

// Target returns a target by name.
func (s *Set) Target(name string) (*Target, bool) {
	t, ok := s.targets[name]
	return t, ok
}

// Targets returns all targets by name.
func (s *Set) Targets() []*Target { return sortedValues(s.targets) }

// Identity returns an identity by name.
func (s *Set) Identity(name string) (*IdentitySpec, bool) {
	i, ok := s.identities[name]
	return i, ok
}

// Identities returns all identities by name.
func (s *Set) Identities() []*IdentitySpec { return sortedValues(s.identities) }

// KeySets returns the names of the key sets of the site file, sorted.
func (s *Set) KeySets() []string { return slices.Sorted(maps.Keys(s.keys)) }

// KeySet returns the keys that answers may be signed with under a name.
func (s *Set) KeySet(name string) (*validate.KeySet, bool) {
	k, ok := s.keys[name]
	if !ok {
		return nil, false
	}
	return k.set, true
}

func sortedValues[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}
