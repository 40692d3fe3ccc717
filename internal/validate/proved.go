package validate

import (
	"maps"

	"chatelaine/internal/fault"
)

// Proved is an answer that passed every stage. Its values were built new. The
// zero value, and nil, is the failure INVALID_RESPONSE.
type Proved struct {
	ok       bool // set by the last stage only
	success  bool
	carries  bool
	notDone  bool
	builtin  bool
	pending  bool
	took     bool // took_effect: true
	said     bool // took_effect is written
	missed   bool // a find in a success row met nothing
	row      string
	code     string
	data     map[string]any
	display  map[string]DisplayText
	captured map[string]any
}

func (p *Proved) passed() bool { return p != nil && p.ok }

// OK says whether the answer is a success of the contract.
func (p *Proved) OK() bool { return p.passed() && p.success }

// Data returns the members of the result; nil unless OK.
func (p *Proved) Data() map[string]any {
	if !p.OK() {
		return nil
	}
	return clone(p.data).(map[string]any)
}

// Display returns the untrusted texts for people; nil unless OK.
func (p *Proved) Display() map[string]DisplayText {
	if !p.OK() {
		return nil
	}
	return maps.Clone(p.display)
}

// Captured returns the values for later steps, and whether the row has a
// capture at all (it may capture nothing and still go on).
func (p *Proved) Captured() (map[string]any, bool) {
	if !p.passed() || !p.carries {
		return nil, false
	}
	return clone(p.captured).(map[string]any), true
}

// Failure returns the code of a failure, and whether it comes from a built-in
// row. It is "" for a success and for a row that captures or is pending.
func (p *Proved) Failure() (code string, builtin bool) {
	if !p.passed() {
		return string(fault.InvalidResponse), false
	}
	return p.code, p.builtin
}

// NotDone says that the row shows that the change did not happen.
func (p *Proved) NotDone() bool { return p.passed() && p.notDone }

// Missed says that the failure NOT_FOUND comes from a find that met nothing in
// the answer of a row that succeeds or goes on: what was asked for was accepted.
// After a change that is no word that nothing was done.
func (p *Proved) Missed() bool { return p.passed() && p.missed }

// Row names the row that matched, "built-in" for one that the contract does not
// write.
func (p *Proved) Row() string {
	if !p.passed() {
		return ""
	}
	return p.row
}

// Pending says that the row of a poll tells that the end has not come.
func (p *Proved) Pending() bool { return p.passed() && p.pending }

// TookEffect returns what a row of a reconcile says about the request: whether
// it took effect, and whether the row says so at all.
func (p *Proved) TookEffect() (effect, said bool) {
	if !p.passed() {
		return false, false
	}
	return p.took, p.said
}
