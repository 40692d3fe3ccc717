// Package strictyaml reads YAML the way chatelaine's files are written: one
// document, JSON's scalars, no anchors, aliases, merge keys, tags or tabs, no
// key twice. Every mistake is reported with its place; nothing is guessed. It
// must never evaluate anything or open a file by itself. internal/actions reads
// contracts, fixtures and the site file with it, cmd/chatelained its settings;
// it imports nothing of ours.
package strictyaml

import (
	"encoding/json"
	"slices"
)

// Kind says what a node is.
type Kind uint8

// The kinds of a node. The zero value is no kind at all.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Sequence
	Mapping
)

// String names the kind in the words used in messages.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "true or false"
	case Number:
		return "a number"
	case String:
		return "text"
	case Sequence:
		return "a list"
	case Mapping:
		return "a mapping"
	}
	return "nothing"
}

// Pos is a place in a file, counted from one.
type Pos struct{ Line, Column int }

// Node is one value with its place.
type Node struct {
	Kind    Kind
	Truth   bool // of a Bool
	Plain   bool // a String written without quotes
	Pos     Pos
	Text    string // text of a String; the JSON spelling of a Number
	Items   []*Node
	Members []Member

	broken []string // keys whose value was refused and reported
}

// Member is one key of a mapping with its value.
type Member struct {
	Key    string
	KeyPos Pos
	Value  *Node
}

// Get returns the value of key, nil where the node is no mapping or has none.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Keys returns the mapping's keys in the order written.
func (n *Node) Keys() []string {
	if n == nil {
		return nil
	}
	keys := make([]string, len(n.Members))
	for i, m := range n.Members {
		keys[i] = m.Key
	}
	return keys
}

// Value returns the node as a JSON value: map[string]any, []any, string,
// json.Number, bool or nil.
func (n *Node) Value() any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case Bool:
		return n.Truth
	case Number:
		return json.Number(n.Text)
	case String:
		return n.Text
	case Sequence:
		out := make([]any, len(n.Items))
		for i, it := range n.Items {
			out[i] = it.Value()
		}
		return out
	case Mapping:
		out := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			out[m.Key] = m.Value.Value()
		}
		return out
	}
	return nil
}

// Broken returns the keys of the mapping whose value was refused and reported.
func (n *Node) Broken() []string { return slices.Clone(n.broken) }
