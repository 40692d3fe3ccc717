package review

import "chatelaine/internal/actions/strictyaml"

// ValueWords writes a value that a step sends on one line.
func ValueWords(n *strictyaml.Node) string { return inline(valueOf(n)) }

// PickWords says where a pick takes its value from.
func PickWords(n *strictyaml.Node) string { return pick(n) }

// PredicateWords says when a row is chosen.
func PredicateWords(n *strictyaml.Node) string { return predicate(n) }

// CheckWords says what a check wants.
func CheckWords(n *strictyaml.Node) string { return check(n) }

// RowWords says which answer a row knows and how it ends.
func RowWords(n *strictyaml.Node) string { return rowWords(row(n)) }

// Ends says how a row ends: success, failure, goes on, pending, took effect or
// did not take effect.
func Ends(n *strictyaml.Node) string { return ends(n) }

// Function says which function a value is, "" for an object, a list or a
// constant.
func Function(n *strictyaml.Node) string { return function(n) }

// Visible makes a text safe for one line: what a reader cannot see, or what
// would turn the line around, is escaped.
func Visible(s string) string { return visible(s) }

// At finds a JSON pointer in a document, nil where it leads nowhere.
func At(n *strictyaml.Node, pointer string) *strictyaml.Node { return at(n, pointer) }
