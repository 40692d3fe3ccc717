package compare

import "slices"

// Weight says what a change is to one of the three who meet it. The zero value
// is nothing.
type Weight uint8

// The weights. Breaking: what was right may now fail or mean something else.
// Compatible: what was right stays right. Equal: nothing but words.
const (
	Nothing Weight = iota
	Equal
	Compatible
	Breaking
)

var weightWords = []string{"", "equal", "compatible", "breaking"}

// String gives the word of the report, "" for nothing.
func (w Weight) String() string {
	if int(w) < len(weightWords) {
		return weightWords[w]
	}
	return "breaking"
}

// MarshalText writes the word, so that JSON has it.
func (w Weight) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// Rule is what a kind of change means. Back is the kind that the same change
// has when old and new are swapped.
type Rule struct {
	Agent, Operator, Upstream Weight
	Loosens                   bool
	Back                      string
}

const (
	no = Nothing
	eq = Equal
	co = Compatible
	br = Breaking
)

// rules are all kinds of change. docs/contract-review.md has the same table; a
// test holds the two together. Two entries of one line are each other's Back.
var rules = func() map[string]Rule {
	out := map[string]Rule{}
	for _, r := range pairsOfRules {
		first, second := r.first, r.second
		first.Back, second.Back = r.back, r.kind
		out[r.kind] = first
		if r.back == r.kind {
			continue
		}
		out[r.back] = second
	}
	return out
}()

// pair is a kind and the kind of the way back.
type pair struct {
	kind, back    string
	first, second Rule
}

func both(kind string, r Rule) pair { return pair{kind, kind, r, r} }

const loosens = true

var pairsOfRules = slices.Concat(generalRules, inputRules, resultRules, routeRules, stepRules, rowRules, onceRules, siteRules)

var generalRules = []pair{
	both("changed", Rule{br, br, br, loosens, ""}),
	both("spelling", Rule{no, eq, no, false, ""}),
	both("reason-changed", Rule{no, eq, no, false, ""}),
	both("old-refused", Rule{br, br, br, loosens, ""}),
	both("action-renamed", Rule{br, br, no, loosens, ""}),
	both("summary-changed", Rule{eq, no, no, false, ""}),
	both("owner-changed", Rule{no, co, no, false, ""}),
	{"contract-added", "contract-removed", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	// A lower effect is asked about less, so both ways loosen.
	{"effect-raised", "effect-lowered", Rule{no, br, br, loosens, ""}, Rule{no, br, br, loosens, ""}},
	{"exception-added", "exception-removed", Rule{no, co, no, loosens, ""}, Rule{no, eq, no, false, ""}},
}

var inputRules = []pair{
	{"input-required-added", "input-required-removed", Rule{br, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"input-added", "input-removed", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"input-wider", "input-narrower", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"input-now-optional", "input-now-required", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"input-reaches", "input-reaches-less", Rule{no, co, co, loosens, ""}, Rule{no, co, co, false, ""}},
	both("input-changed", Rule{br, br, no, loosens, ""}),
	both("input-described", Rule{eq, no, no, false, ""}),
}

var resultRules = []pair{
	{"result-added", "result-removed", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"result-wider", "result-narrower", Rule{br, co, co, loosens, ""}, Rule{co, co, br, false, ""}},
	{"result-now-optional", "result-now-required", Rule{br, co, co, loosens, ""}, Rule{co, co, br, false, ""}},
	both("result-changed", Rule{br, br, br, loosens, ""}),
	both("result-described", Rule{eq, no, no, false, ""}),
	{"display-added", "display-removed", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"display-wider", "display-narrower", Rule{co, co, no, loosens, ""}, Rule{co, co, no, false, ""}},
	{"code-added", "code-removed", Rule{co, no, no, false, ""}, Rule{br, no, no, false, ""}},
	{"code-now-retryable", "code-now-final", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	both("code-message", Rule{eq, no, no, false, ""}),
	{"check-added", "check-removed", Rule{no, co, br, false, ""}, Rule{no, br, co, loosens, ""}},
	{"check-tightened", "check-loosened", Rule{no, co, br, false, ""}, Rule{no, br, co, loosens, ""}},
	both("check-changed", Rule{no, br, br, loosens, ""}),
}

var routeRules = []pair{
	both("route-by-changed", Rule{br, br, no, loosens, ""}),
	both("route-list-changed", Rule{br, br, no, loosens, ""}),
	{"route-case-added", "route-case-removed", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	both("route-case-target", Rule{br, br, no, loosens, ""}),
	both("route-case-constants", Rule{no, br, br, loosens, ""}),
	{"target-added", "target-removed", Rule{no, br, no, loosens, ""}, Rule{no, co, no, false, ""}},
	both("sentence-changed", Rule{no, br, no, loosens, ""}),
	{"show-added", "show-removed", Rule{no, co, no, false, ""}, Rule{no, br, no, loosens, ""}},
	both("show-changed", Rule{no, br, no, loosens, ""}),
	{"ask-looser", "ask-stricter", Rule{co, br, no, loosens, ""}, Rule{co, co, no, false, ""}},
}

var stepRules = []pair{
	{"lookup-added", "lookup-removed", Rule{no, co, co, loosens, ""}, Rule{no, co, co, loosens, ""}},
	both("lookup-order", Rule{no, br, br, loosens, ""}),
	{"poll-added", "poll-removed", Rule{br, co, co, loosens, ""}, Rule{br, co, co, loosens, ""}},
	{"poll-faster", "poll-slower", Rule{no, co, co, loosens, ""}, Rule{no, co, no, false, ""}},
	{"poll-longer", "poll-shorter", Rule{no, co, co, loosens, ""}, Rule{no, co, br, false, ""}},
	{"reconcile-added", "reconcile-removed", Rule{co, co, co, loosens, ""}, Rule{co, br, no, loosens, ""}},
	both("method-changed", Rule{no, br, br, loosens, ""}),
	both("path-changed", Rule{no, br, br, loosens, ""}),
	{"query-added", "query-removed", Rule{no, co, co, loosens, ""}, Rule{no, co, br, loosens, ""}},
	both("query-changed", Rule{no, co, br, loosens, ""}),
	{"header-added", "header-removed", Rule{no, co, co, loosens, ""}, Rule{no, co, br, loosens, ""}},
	both("header-changed", Rule{no, co, br, loosens, ""}),
	{"body-added", "body-removed", Rule{no, co, co, loosens, ""}, Rule{no, co, br, loosens, ""}},
	both("body-changed", Rule{no, co, br, loosens, ""}),
	{"reads-added", "reads-removed", Rule{no, br, no, loosens, ""}, Rule{no, br, no, loosens, ""}},
	{"timeout-longer", "timeout-shorter", Rule{no, co, no, loosens, ""}, Rule{no, co, br, false, ""}},
}

var rowRules = []pair{
	{"row-added", "row-removed", Rule{co, co, co, loosens, ""}, Rule{no, co, br, false, ""}},
	// An answer that matched two rows was refused; with one of them gone it is not.
	{"row-added-beside", "row-removed-beside", Rule{co, co, br, loosens, ""}, Rule{no, co, br, loosens, ""}},
	// A built-in row stands below: it takes the answer over, perhaps with a code
	// after which the call is sent again.
	{"row-added-over", "row-removed-over", Rule{co, co, co, loosens, ""}, Rule{co, co, br, loosens, ""}},
	// Another row of the status may now be the only one that matches.
	{"row-status-added", "row-status-removed", Rule{no, co, co, loosens, ""}, Rule{no, co, br, loosens, ""}},
	both("row-media", Rule{no, co, br, loosens, ""}),
	{"row-when-added", "row-when-removed", Rule{no, co, br, loosens, ""}, Rule{no, co, co, loosens, ""}},
	both("row-when-changed", Rule{no, co, br, loosens, ""}),
	both("row-end-changed", Rule{br, br, br, loosens, ""}),
	{"expect-removed", "expect-added", Rule{no, co, co, loosens, ""}, Rule{no, co, br, false, ""}},
	{"expect-opened", "expect-closed", Rule{no, co, co, loosens, ""}, Rule{no, co, br, false, ""}},
	{"expect-wider", "expect-narrower", Rule{no, co, co, loosens, ""}, Rule{no, co, br, false, ""}},
	both("expect-changed", Rule{no, co, br, loosens, ""}),
	both("expect-described", Rule{no, eq, no, false, ""}),
	// A check applies only where its member is picked, so a pick that goes may
	// take a check with it.
	{"pick-added", "pick-removed", Rule{no, co, co, loosens, ""}, Rule{no, co, co, loosens, ""}},
	both("pick-changed", Rule{no, br, br, loosens, ""}),
	both("failure-changed", Rule{br, co, co, loosens, ""}),
	{"failure-code-added", "failure-code-removed", Rule{co, co, co, loosens, ""}, Rule{co, co, br, false, ""}},
	{"not-done-added", "not-done-removed", Rule{co, br, no, loosens, ""}, Rule{co, co, no, false, ""}},
}

var onceRules = []pair{
	{"idempotency-added", "idempotency-removed", Rule{no, co, co, loosens, ""}, Rule{no, br, br, loosens, ""}},
	both("idempotency-changed", Rule{no, br, br, loosens, ""}),
	{"at-most-once-added", "at-most-once-removed", Rule{no, co, no, false, ""}, Rule{no, co, no, loosens, ""}},
	{"confirm-removed", "confirm-added", Rule{br, br, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"retry-more", "retry-less", Rule{no, co, co, loosens, ""}, Rule{no, co, no, false, ""}},
	{"retry-longer", "retry-shorter", Rule{no, co, co, loosens, ""}, Rule{no, co, no, false, ""}},
	{"retry-code-added", "retry-code-removed", Rule{no, co, co, loosens, ""}, Rule{no, co, no, false, ""}},
	both("rate-limit-changed", Rule{no, co, co, loosens, ""}),
}

var siteRules = []pair{
	{"site-target-added", "site-target-removed", Rule{no, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	both("site-address-changed", Rule{no, br, br, loosens, ""}),
	both("site-identity-switched", Rule{no, br, br, loosens, ""}),
	{"site-action-listed", "site-action-unlisted", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-effect-added", "site-effect-removed", Rule{no, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-ask-looser", "site-ask-stricter", Rule{co, br, no, loosens, ""}, Rule{co, co, no, false, ""}},
	both("site-trust-changed", Rule{no, br, br, loosens, ""}),
	{"site-pin-removed", "site-pin-added", Rule{no, br, co, loosens, ""}, Rule{no, co, br, false, ""}},
	both("site-headers-changed", Rule{no, br, br, loosens, ""}),
	{"site-version-header-added", "site-version-header-removed", Rule{no, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-read-by-post-added", "site-read-by-post-removed", Rule{no, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-escaped-slash-on", "site-escaped-slash-off", Rule{no, co, co, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-network-added", "site-network-removed", Rule{no, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	both("site-http2-changed", Rule{no, co, co, false, ""}),
	both("site-constants-changed", Rule{no, br, br, loosens, ""}),
	{"site-identity-added", "site-identity-removed", Rule{no, co, no, false, ""}, Rule{no, co, no, false, ""}},
	both("site-identity-changed", Rule{no, br, br, loosens, ""}),
	both("site-exchange-changed", Rule{no, br, br, loosens, ""}),
	both("site-check-changed", Rule{no, co, no, false, ""}),
	{"site-grant-added", "site-grant-removed", Rule{no, br, co, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-grant-opened", "site-grant-bounded", Rule{no, br, co, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-valid-longer", "site-valid-shorter", Rule{no, br, co, loosens, ""}, Rule{no, co, no, false, ""}},
	{"site-force-command-off", "site-force-command-on", Rule{no, br, co, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-host-key-added", "site-host-key-removed", Rule{no, br, co, loosens, ""}, Rule{no, co, br, false, ""}},
	both("site-shell-changed", Rule{no, br, br, loosens, ""}),
	{"site-read-command-added", "site-read-command-removed", Rule{no, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	{"site-list-entry-added", "site-list-entry-removed", Rule{co, co, no, loosens, ""}, Rule{br, co, no, false, ""}},
	both("site-list-entry-changed", Rule{br, br, no, loosens, ""}),
	{"site-keys-added", "site-keys-removed", Rule{no, co, no, loosens, ""}, Rule{no, co, br, false, ""}},
	both("site-keys-changed", Rule{no, br, br, loosens, ""}),
}
