package auditlog

import (
	"crypto/sha256"
	"math/bits"
)

// tree is the compact form of the RFC 6962 Merkle tree over the chain values:
// its size and the roots of its perfect subtrees, largest first. It is enough
// to add leaves and to give the root, so a log can be checked from any segment
// on.
type tree struct {
	size     uint64
	frontier []hash // bits.OnesCount64(size) of them
}

// leafHash is the RFC 6962 leaf hash of a chain value.
func leafHash(chain hash) hash {
	var b [1 + hashSize]byte
	copy(b[1:], chain[:])
	return sha256.Sum256(b[:])
}

// nodeHash is the RFC 6962 hash of two children.
func nodeHash(l, r hash) hash {
	var b [1 + 2*hashSize]byte
	b[0] = 1
	copy(b[1:], l[:])
	copy(b[1+hashSize:], r[:])
	return sha256.Sum256(b[:])
}

// add appends one chain value as a leaf.
func (t *tree) add(chain hash) {
	h := leafHash(chain)
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.frontier) - 1
		h = nodeHash(t.frontier[last], h)
		t.frontier = t.frontier[:last]
	}
	t.frontier = append(t.frontier, h)
	t.size++
}

// root gives the tree's root; of the empty tree it is SHA-256 of nothing.
func (t *tree) root() hash {
	if len(t.frontier) == 0 {
		return sha256.Sum256(nil)
	}
	i := len(t.frontier) - 1
	h := t.frontier[i]
	for i--; i >= 0; i-- {
		h = nodeHash(t.frontier[i], h)
	}
	return h
}

// clone copies the tree so that both can grow.
func (t *tree) clone() tree {
	return tree{size: t.size, frontier: append([]hash(nil), t.frontier...)}
}

// equal compares size and subtree roots.
func (t *tree) equal(o *tree) bool {
	if t.size != o.size || len(t.frontier) != len(o.frontier) {
		return false
	}
	for i := range t.frontier {
		if t.frontier[i] != o.frontier[i] {
			return false
		}
	}
	return true
}

// frontierLen gives the number of subtree roots of a tree of that size.
func frontierLen(size uint64) int { return bits.OnesCount64(size) }
