// Package conformance holds the proof that the answer boundary does what it
// says: the public suites for JSON Schema and for JSON parsing, other parsers
// and engines as witnesses, the cost of the worst answers, and the list of
// every check with the test that guards it. docs/conformance.md shows what they
// found, and the tests here hold that page to the truth.
//
// It has tests only and must never be linked into a program; nothing imports
// it. What needs other people's data carries the build tag conformance and runs
// by `make conformance`; the rest runs with all other tests.
package conformance
