package actions

import (
	"slices"

	"chatelaine/internal/validate"
)

// bodyless are the statuses whose answers have no body (RFC 9110, 15.3.5,
// 15.3.6 and 15.4.5).
var bodyless = []int{204, 205, 304}

// rows looks for rows that cannot be the one match.
func (l *linter) rows() {
	for _, st := range l.c.allSteps() {
		for i := range st.rows {
			if l.dead(st, i) {
				continue
			}
			l.rivals(st, i)
			l.contradicted(st, i)
		}
	}
}

// dead remarks on a row that matches nothing, whatever the other rows say.
func (l *linter) dead(s *stepSpec, i int) bool {
	r, at := s.rows[i], s.rowPos[i]
	for _, status := range r.Status {
		if r.Media != validate.MediaNone && slices.Contains(bodyless, status) {
			l.say("outcome-never", at, "write media: none", "an answer %d has no body, and this row reads one", status)
			return true
		}
	}
	if r.When == nil {
		return false
	}
	when, ok := cases(r.When)
	if ok && len(when) == 0 {
		l.say("outcome-never", at, "look at what its predicates ask of the same place", "the `when` of this row contradicts itself, so that it never matches")
		return true
	}
	if ok && r.Media == validate.MediaText && !slices.ContainsFunc(when, fitsText) {
		l.say("outcome-never", at, "use \"\" for the whole text, or read JSON", "the body of this row is text, which has no members")
		return true
	}
	return false
}

// fitsText says whether a conjunction may hold for a body that is one text.
func fitsText(c conjunction) bool {
	return !slices.ContainsFunc(c, func(x literal) bool { return x.ptr != "" && needs(x, x.ptr) })
}

// rivals compares a row with the others that read the same answers.
func (l *linter) rivals(s *stepSpec, i int) {
	r := s.rows[i]
	mine, ok := cases(r.When)
	if !ok || r.Pending {
		return
	}
	for j, o := range s.rows {
		other, ok := cases(o.When)
		if i == j || !ok || len(other) == 0 || o.Pending || o.Media != r.Media || !overlapping(r.Status, o.Status) {
			continue
		}
		if covers(o.Status, r.Status) && always(mine, other) {
			l.say("outcome-never", s.rowPos[i], "let each of the two exclude the other", "whatever matches this row matches the one in line %d too, so that it is never the only one", s.rowPos[j].Line)
			continue
		}
		if i < j && !(covers(r.Status, o.Status) && always(other, mine)) {
			if both, certain := together(mine, other); certain {
				l.say("outcome-twice", s.rowPos[j], "let each of the two exclude the other", "this row and the one in line %d both match%s", s.rowPos[i].Line, sharedValue(both))
			}
		}
	}
}

func overlapping(a, b []int) bool {
	return slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
}

func covers(all, part []int) bool {
	return !slices.ContainsFunc(part, func(x int) bool { return !slices.Contains(all, x) })
}

// sharedValue names a value that both rows take, "" where none can be named.
func sharedValue(c conjunction) string {
	for _, a := range c {
		if a.set == nil || a.negate {
			continue
		}
		for _, v := range a.set {
			if !slices.ContainsFunc(c, func(b literal) bool {
				return b.ptr == a.ptr && b.set != nil && holds(b.set, v) == b.negate
			}) {
				return " where " + pointerText(a.ptr) + " is " + string(validate.Canonical(v))
			}
		}
	}
	return ""
}

func pointerText(ptr string) string {
	if ptr == "" {
		return "the body"
	}
	return ptr
}

// contradicted holds `expect` against `when`.
func (l *linter) contradicted(s *stepSpec, i int) {
	r := s.rows[i]
	doc, described := r.Expect.(map[string]any)
	when, ok := cases(r.When)
	if !described || !ok || r.When == nil {
		return
	}
	view := schemaView{root: doc}
	why := literal{}
	for _, c := range when {
		at := slices.IndexFunc(c, func(x literal) bool { return !view.allows(x) })
		if at < 0 {
			return
		}
		why = c[at]
	}
	l.say("outcome-expect", s.rowPos[i], "let `expect` take what `when` chooses", "`when` chooses answers that `expect` refuses, because of %s", pointerText(why.ptr))
}

// allows says whether a value of the schema may satisfy a literal. What it
// cannot tell it allows.
func (v schemaView) allows(x literal) bool {
	s, state := v.walk(v.root, pointerTokens(x.ptr))
	switch {
	case x.opaque != "" || state == standsOpen:
		return true
	case state == standsShut:
		return x.negate || !needs(x, x.ptr)
	case x.exists():
		return true // whether it is required is not followed
	}
	for _, val := range x.set {
		if !x.negate && v.takes(s, val) {
			return true
		}
	}
	if !x.negate {
		return false
	}
	list, closed := s["enum"].([]any)
	if c, ok := s["const"]; ok {
		list, closed = []any{c}, true
	}
	return !closed || slices.ContainsFunc(list, func(e any) bool { return !holds(x.set, e) })
}

// takes says whether a schema's own words allow a value.
func (v schemaView) takes(s map[string]any, val any) bool {
	if list, ok := s["enum"].([]any); ok && !holds(list, val) {
		return false
	}
	if c, ok := s["const"]; ok && !validate.Equal(c, val) {
		return false
	}
	names := []any{s["type"]}
	if list, ok := s["type"].([]any); ok {
		names = list
	}
	for _, n := range names {
		if n == nil || schemaKind(map[string]any{"type": n}) == kindOf(val) {
			return true
		}
	}
	return false
}

// standing says what a schema knows of a pointer.
type standing uint8

const (
	standsOpen  standing = iota // nothing for sure
	standsThere                 // a schema describes it
	standsShut                  // no value that the schema takes has it
)

// walk follows the parts of a pointer through a schema.
func (v schemaView) walk(s map[string]any, tokens []string) (map[string]any, standing) {
	for _, tok := range tokens {
		s = v.resolve(s)
		for _, word := range []string{"allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"} {
			if s[word] != nil {
				return nil, standsOpen
			}
		}
		props, _ := s["properties"].(map[string]any)
		next, named := props[tok].(map[string]any)
		switch k := schemaKind(s); {
		case named:
			s = next
		case k == kindList && indexOf(tok) >= 0:
			if s = asSchema(s["items"]); s == nil {
				return nil, standsOpen
			}
		case k == kindObject && s["additionalProperties"] == false:
			return nil, standsShut
		case k != kindObject && k != kindList && k != kindAny:
			return nil, standsShut
		default:
			return nil, standsOpen
		}
	}
	return v.resolve(s), standsThere
}
