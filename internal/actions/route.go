package actions

import (
	"maps"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// Route is where one call goes. The zero value goes nowhere.
type Route struct {
	target *Target
	with   map[string]any
}

// Target returns the target, nil for the zero value.
func (r Route) Target() *Target { return r.target }

// With returns one of the constants of the route or of its target; path is what
// stands behind "target.".
func (r Route) With(path string) (any, bool) {
	if v, ok := walkPath(r.with, path); ok {
		return v, true
	}
	if r.target == nil {
		return nil, false
	}
	return r.target.Const(path)
}

// Resolve finds the one target of a call and asks again whether it takes this
// action and its effect. The error is TARGET_NOT_ALLOWED.
func (s *Set) Resolve(c *Contract, in Input) (Route, error) {
	if c == nil || in.contract != c {
		return Route{}, fault.New(fault.Internal, errUnusable)
	}
	found := []routeCase{}
	for _, k := range c.route.cases {
		if k.matches(c.route.by, in.value) {
			found = append(found, k)
		}
	}
	if len(found) != 1 {
		return Route{}, fault.Newf(fault.TargetNotAllowed, "%d cases of the route match", len(found))
	}
	t, ok := s.targets[found[0].target]
	switch {
	case !ok:
		return Route{}, fault.Newf(fault.TargetNotAllowed, "there is no target %q", found[0].target)
	case !t.AllowsAction(c.action):
		return Route{}, fault.Newf(fault.TargetNotAllowed, "the target %q does not list the action %s", t.name, c.action)
	case !t.AllowsEffect(c.effect):
		return Route{}, fault.Newf(fault.TargetNotAllowed, "the target %q does not take the effect %s", t.name, c.effect)
	}
	return Route{target: t, with: maps.Clone(found[0].with)}, nil
}

// matches compares code point by code point: a letter that looks alike is
// another one.
func (k routeCase) matches(by []string, input map[string]any) bool {
	if len(k.values) != len(by) {
		return false
	}
	for i, name := range by {
		v, ok := input[name]
		if !ok || !validate.Equal(v, k.values[i]) {
			return false
		}
	}
	return true
}
