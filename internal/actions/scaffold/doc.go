// Package scaffold writes the first draft of a contract: a closed skeleton with
// bounded fields, fixtures of every kind, a suggested target, and the list of
// what the author must decide. It must never import openness (what a description
// leaves open becomes a decision), never write over anything, never put a host or
// an identity into a contract, and never open a connection. cmd/chatelaine
// imports it, and scaffold/openapi, which makes an Outline from a description; it
// imports actions and validate.
package scaffold
