package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// facts is what a check looks at: the new result, the values of the call, the
// time, and for signed the body.
type facts struct {
	data  map[string]any
	body  view
	scope Scope
	now   time.Time
}

// checkFault says which rule of a check failed and why. It holds no byte of the
// answer.
type checkFault struct{ rule, why string }

func failed(rule, why string) *checkFault { return &checkFault{rule, why} }

// fails makes the fault of a check of one rule.
func (s CheckSpec) fails(ok bool, why string) *checkFault {
	if ok {
		return nil
	}
	return failed(s.Kind, why)
}

// look resolves a value path. One that begins with result. is looked up in the
// data that was built, never in the answer.
func (f facts) look(path string) (any, bool) {
	rest, isResult := strings.CutPrefix(path, "result.")
	if !isResult {
		return view{scope: f.scope}.from(path)
	}
	var v any = f.data
	for name := range strings.SplitSeq(rest, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

func (f facts) moment(path string) (time.Time, bool) {
	v, ok := f.look(path)
	s, text := v.(string)
	if !ok || !text {
		return time.Time{}, false
	}
	i, ok := parseDateTime(s)
	return i.time, ok
}

// check is a compiled semantic check.
type check struct {
	spec    CheckSpec
	name    string   // checks[0]
	members []string // top-level result members it looks at
	always  bool     // applies to every success
	holds   func(facts) *checkFault
}

// appliesTo says whether the row picks a member that the check looks at. A
// signature is wanted of every success: an answer without it is no evidence.
func (c check) appliesTo(r row) bool {
	if c.always {
		return true
	}
	for _, m := range c.members {
		if _, ok := r.success.by[m]; ok {
			return true
		}
	}
	return false
}

func (c check) String() string {
	if c.spec.Signed != nil {
		return c.spec.Kind + " " + c.spec.Signed.JWS
	}
	if c.spec.At != "" {
		return c.spec.Kind + " " + c.spec.At
	}
	return c.spec.Kind + " " + c.spec.Left + ", " + c.spec.Right
}

func compileChecks(specs []CheckSpec) ([]check, error) {
	var out []check
	var errs []error
	for i, s := range specs {
		c, err := compileCheck(s)
		c.name = fmt.Sprintf("checks[%d]", i)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
		out = append(out, c)
	}
	return out, errors.Join(errs...)
}

func compileCheck(s CheckSpec) (check, error) {
	if s.Kind == "signed" && s.Signed != nil && s.Left == "" && s.Right == "" && s.At == "" {
		return compileSigned(s)
	}
	c := check{spec: s}
	for _, path := range []string{s.Left, s.Right, s.At} {
		if rest, ok := strings.CutPrefix(path, "result."); ok {
			member, _, _ := strings.Cut(rest, ".")
			c.members = append(c.members, member)
		}
	}
	if len(c.members) == 0 {
		return c, errors.New("a check looks at a member of the result: result.NAME")
	}
	two, one := s.Left != "" && s.Right != "" && s.At == "", s.Left == "" && s.Right == "" && s.At != ""
	switch {
	case s.Signed != nil:
		return c, fmt.Errorf("%q takes no signature", s.Kind)
	case s.Within < 0 || s.Skew < 0:
		return c, errors.New("within and skew are not negative")
	case s.Kind == "same" && two:
		c.holds = s.same
	case s.Kind == "increased" && two:
		c.holds = s.increased
	case s.Kind == "fresh" && one && s.Within > 0:
		c.holds = s.fresh
	case s.Kind == "after_call" && one:
		c.holds = s.afterCall
	default:
		return c, fmt.Errorf("%q: write same: [a, b], increased: [a, b], fresh: {at, within, skew}, after_call: {at, skew} or signed: {jws, keys, issuer, audience, claims}", s.Kind)
	}
	return c, nil
}

func (s CheckSpec) same(f facts) *checkFault {
	a, ok := f.look(s.Left)
	b, also := f.look(s.Right)
	if !ok || !also {
		return failed(s.Kind, "one side is absent")
	}
	return s.fails(Equal(a, b), "the two sides differ")
}

func (s CheckSpec) increased(f facts) *checkFault {
	a, _ := f.look(s.Left)
	b, _ := f.look(s.Right)
	x, ok := a.(json.Number)
	y, also := b.(json.Number)
	if !ok || !also {
		return failed(s.Kind, "one side is absent or no number")
	}
	return s.fails(Compare(x, y) > 0, "the first number is not above the second")
}

// fresh holds from within before now until skew after now: a time in the
// future is no observation.
func (s CheckSpec) fresh(f facts) *checkFault {
	t, ok := f.moment(s.At)
	if !ok {
		return failed(s.Kind, "the time is absent or no date-time")
	}
	if t.After(f.now.Add(s.Skew)) {
		return failed(s.Kind, "the time lies in the future")
	}
	return s.fails(!t.Before(f.now.Add(-s.Within)), "the time is too long ago")
}

func (s CheckSpec) afterCall(f facts) *checkFault {
	t, ok := f.moment(s.At)
	began, also := f.moment("call.now")
	if !ok || !also {
		return failed(s.Kind, "the time or call.now is absent or no date-time")
	}
	return s.fails(!t.Before(began.Add(-s.Skew)), "the time lies before the call")
}
