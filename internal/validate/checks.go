package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// facts is what a check looks at: the new result, the values of the call and
// the time.
type facts struct {
	data  map[string]any
	scope Scope
	now   time.Time
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
	members []string // top-level result members it looks at
	holds   func(facts) (ok bool, why string)
}

// appliesTo says whether the row picks a member that the check looks at.
func (c check) appliesTo(r row) bool {
	for _, m := range c.members {
		if _, ok := r.success.by[m]; ok {
			return true
		}
	}
	return false
}

func (c check) String() string {
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
		if err != nil {
			errs = append(errs, fmt.Errorf("checks[%d]: %w", i, err))
		}
		out = append(out, c)
	}
	return out, errors.Join(errs...)
}

func compileCheck(s CheckSpec) (check, error) {
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
		return c, fmt.Errorf("%q: write same: [a, b], increased: [a, b], fresh: {at, within, skew} or after_call: {at, skew}", s.Kind)
	}
	return c, nil
}

func (s CheckSpec) same(f facts) (bool, string) {
	a, ok := f.look(s.Left)
	b, also := f.look(s.Right)
	if !ok || !also {
		return false, "one side is absent"
	}
	return Equal(a, b), "the two sides differ"
}

func (s CheckSpec) increased(f facts) (bool, string) {
	a, _ := f.look(s.Left)
	b, _ := f.look(s.Right)
	x, ok := a.(json.Number)
	y, also := b.(json.Number)
	if !ok || !also {
		return false, "one side is absent or no number"
	}
	return Compare(x, y) > 0, "the first number is not above the second"
}

// fresh holds from within before now until skew after now: a time in the
// future is no observation.
func (s CheckSpec) fresh(f facts) (bool, string) {
	t, ok := f.moment(s.At)
	if !ok {
		return false, "the time is absent or no date-time"
	}
	if t.After(f.now.Add(s.Skew)) {
		return false, "the time lies in the future"
	}
	return !t.Before(f.now.Add(-s.Within)), "the time is too long ago"
}

func (s CheckSpec) afterCall(f facts) (bool, string) {
	t, ok := f.moment(s.At)
	began, also := f.moment("call.now")
	if !ok || !also {
		return false, "the time or call.now is absent or no date-time"
	}
	return !t.Before(began.Add(-s.Skew)), "the time lies before the call"
}
