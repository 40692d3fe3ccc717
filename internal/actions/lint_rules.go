package actions

import (
	"cmp"
	"slices"
	"sync"
)

// Severity says how grave it is to break a rule. The zero value is none of them.
type Severity uint8

// The severities. Everything that the loader refuses is an error; so is what
// the lint says where a contract may let through what nobody reviewed.
const (
	Warning Severity = iota + 1
	Error
)

// String gives the word that the command line prints.
func (s Severity) String() string {
	switch s {
	case Warning:
		return "warning"
	case Error:
		return "error"
	}
	return "unset"
}

// Decider says who finds that a rule is broken. The zero value is nobody.
type Decider uint8

// The deciders, in the order in which a file meets them.
const (
	ByReader   Decider = iota + 1 // the strict reader, in any file
	ByLoader                      // the loader, in a contract
	BySchema                      // the schema lint, in a schema of a contract
	BySite                        // the loader, in the site file
	ByFixtures                    // the reader of fixtures
	ByLint                        // the lint, in a contract that loads
)

// String gives the word that the command line prints.
func (d Decider) String() string {
	switch d {
	case ByReader:
		return "reader"
	case ByLoader:
		return "loader"
	case BySchema:
		return "schema"
	case BySite:
		return "site"
	case ByFixtures:
		return "fixtures"
	case ByLint:
		return "lint"
	}
	return "nobody"
}

// Rule is one thing that is asked of contracts, the site file or fixtures. Its
// id never changes, because exceptions and other people's programs name it.
type Rule struct {
	ID       string
	Title    string // what breaks it, without a full stop
	Reason   string // why it is asked
	Page     string // the part of docs/contract-format.md that states it
	Severity Severity
	Decider  Decider
	// NoExample says why there is no example; "" where there is one.
	NoExample string
}

// Rules returns every rule, by decider and then by id.
func Rules() []Rule { return slices.Clone(allRules()) }

// RuleByID returns one rule.
func RuleByID(id string) (Rule, bool) {
	for _, r := range allRules() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// exceptionRules returns the ids of the rules that the lint decides, sorted. These,
// and only these, may be set aside.
func exceptionRules() []string {
	var out []string
	for _, r := range allRules() {
		if r.MayBeSetAside() {
			out = append(out, r.ID)
		}
	}
	return out
}

// ruleExceptionUnused is the one finding of the lint that no exception hides.
const ruleExceptionUnused = "exception-unused"

var allRules = sync.OnceValue(func() []Rule {
	var out []Rule
	for i, table := range [][]Rule{fileRules, contractRules, schemaRules, siteRules, fixtureRules, lintRules} {
		for _, r := range table {
			r.Decider = Decider(i + 1)
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Decider, b.Decider), cmp.Compare(a.ID, b.ID))
	})
	return out
})

// MayBeSetAside says whether an exception may name the rule.
func (r Rule) MayBeSetAside() bool { return r.Decider == ByLint && r.ID != ruleExceptionUnused }

// Finder names the decider in a sentence.
func (d Decider) Finder() string {
	switch d {
	case ByReader:
		return "strict reader, in any file"
	case ByLoader:
		return "loader, in a contract"
	case BySchema:
		return "loader, in a schema of a contract"
	case BySite:
		return "loader, in the site file"
	case ByFixtures:
		return "reader of fixtures"
	case ByLint:
		return "lint, in a contract that loads"
	}
	return "nobody"
}
