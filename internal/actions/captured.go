package actions

import (
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// place says where in a contract a value stands, and so what may stand there.
type place uint8

const (
	placeRead     place = iota // compared, picked: nothing of it is sent
	placeSent                  // a path, a query, a header or a body
	placeApproval              // shown before anything of the request is sent
)

// gathered is what a step's rows capture, by name.
type gathered struct {
	step   *stepSpec
	rows   int // rows that go on
	values map[string]*capturedValue
	// broken says that a mistake was told in the step already, so that a name
	// that is missing may be one that was not read.
	broken bool
}

// capturedValue is one name that rows capture: a shape for each of them, nil for
// one of which nothing is known.
type capturedValue struct {
	shapes []shape
	always bool // every row that goes on gives it
}

// gather takes the captures of a step together, once its rows are read.
func (d *draft) gather(s *stepSpec, broken bool) *gathered {
	g := &gathered{step: s, values: map[string]*capturedValue{}, broken: broken}
	given := map[string]int{}
	for i, row := range s.rows {
		if !row.HasCapture {
			continue
		}
		g.rows++
		for name, p := range row.Capture {
			v := g.values[name]
			if v == nil {
				v = &capturedValue{}
				g.values[name] = v
			}
			v.shapes = append(v.shapes, s.captures[i][name])
			if !mayLeaveOut(p) {
				given[name]++
			}
		}
	}
	for name, v := range g.values {
		v.always = given[name] == g.rows
	}
	return g
}

// gatheredBy returns what a root of a value path stands for, where it is a
// lookup or the request.
func (d *draft) gatheredBy(root string) (*gathered, bool) {
	g, ok := d.captured[root]
	return g, ok
}

// look finds a captured value and what stands inside it. names are the names
// known where it failed; always says that it is there whenever the step went on.
func (g *gathered) look(rest string) (shapes []shape, always bool, names []string) {
	name, inner, dotted := strings.Cut(rest, ".")
	v := g.values[name]
	if v == nil {
		return nil, false, sortedKeys(g.values)
	}
	always = v.always
	for _, s := range v.shapes {
		if !dotted {
			shapes = append(shapes, flatShape(s))
			continue
		}
		if s == nil {
			return nil, false, nil
		}
		sub, required, known := plainView(s).property(s, inner)
		if sub == nil {
			return nil, false, known
		}
		always = always && required
		shapes = append(shapes, flatShape(sub))
	}
	return shapes, always, nil
}

// capturedPath checks a value path that begins with a lookup's name or with
// request.
func (d *draft) capturedPath(at strictyaml.Pos, root, rest string, want kind, optional bool) bool {
	g := d.captured[root]
	shapes, always, names := g.look(rest)
	if root == stepRequest && d.step != nil && d.step.kind == StepReconcile {
		always = false // its answer may have been lost
	}
	path := root + "." + rest
	switch {
	case shapes == nil && g.broken:
		return false
	case shapes == nil:
		d.bad(at, "value-path", strictyaml.DidYouMean(rest[strings.LastIndex(rest, ".")+1:], names), "%s captures no value %q", stepWords(g.step), rest)
		return false
	case d.place == placeApproval && root == stepRequest:
		d.bad(at, "value-path", "show a lookup's value", "%s is not known before the request is sent", path)
		return false
	case !always && !optional:
		d.bad(at, "value-optional", "write optional: true, or capture it in every row that goes on", "%s may be absent", path)
		return false
	}
	for _, s := range shapes {
		if d.place == placeSent && !bounded(s) {
			d.bad(at, "capture", "describe it in the row's expect: a type with maxLength, enum, an anchored pattern, or minimum and maximum", "%s is sent, and the row that captures it does not bound it", path)
			return false
		}
		if !d.wants(at, schemaKind(s), want) {
			return false
		}
	}
	return true
}

// stepWords names a step for a person.
func stepWords(s *stepSpec) string {
	if s.kind == StepLookup {
		return "the lookup " + s.name
	}
	return "the " + s.name
}

// bounded says whether a captured value is typed, closed and bounded.
func bounded(s shape) bool {
	return s != nil && len(validate.LintSchema(any(s), validate.UseInput)) == 0
}

// alternatives returns the shapes that a captured path may have as one schema:
// the only one, or one of several.
func alternatives(shapes []shape) map[string]any {
	switch len(shapes) {
	case 0:
		return nil
	case 1:
		return shapes[0]
	}
	out := make([]any, len(shapes))
	for i, s := range shapes {
		if s == nil {
			return nil
		}
		out[i] = s
	}
	return map[string]any{"anyOf": out}
}

// tight says whether text cannot be a sentence: everything in the value is a
// number, true or false, one of the author's own texts, or visible ASCII without
// a space.
func tight(view schemaView, s map[string]any, depth int) bool {
	s = view.flat(s)
	if s == nil || depth == 0 {
		return false
	}
	if _, closed := closedSet(s); closed {
		return true
	}
	if branches, ok := s["anyOf"].([]any); ok && s["type"] == nil {
		return !slices.ContainsFunc(branches, func(b any) bool { m, _ := b.(map[string]any); return !tight(view, m, depth-1) })
	}
	switch schemaKind(s) {
	case kindNumber, kindBool, kindNull:
		return true
	case kindText:
		p, _ := s["pattern"].(string)
		return s["format"] == "date-time" || s["format"] == "date" || s["format"] == "uuid" || p != "" && overAlphabet(p, visible)
	case kindList:
		items := view.items(s)
		return items != nil && tight(view, items, depth-1)
	case kindObject:
		for _, name := range view.propertyNames(s, refDepth) {
			if sub, _ := view.member(s, name); !tight(view, sub, depth-1) {
				return false
			}
		}
		return true
	}
	return false
}

func visible(r rune) bool { return r > 0x20 && r < 0x7f }

// sendsFree says whether a step sends text that may be a sentence of the
// caller's, by itself or through a lookup that sent it.
func (d *draft) sendsFree(s *stepSpec) bool {
	for _, path := range s.paths() {
		root, rest, _ := strings.Cut(path, ".")
		g, isCaptured := d.gatheredBy(root)
		switch {
		case root == "input" && d.isListInput(rest):
		case root == "input":
			if sub, _, _ := d.in.property(d.in.root, rest); sub != nil && !tight(d.in, sub, refDepth) {
				return true
			}
		case isCaptured && g.step.free:
			shapes, _, _ := g.look(rest)
			if slices.ContainsFunc(shapes, func(x shape) bool { return !tight(plainView(x), x, refDepth) }) {
				return true
			}
		}
	}
	return false
}

// paths lists every value path that a step sends.
func (s *stepSpec) paths() []string {
	out := map[string]bool{}
	if s.path != nil {
		for _, p := range s.path.placeholders() {
			out[p.path] = true
		}
	}
	for _, m := range slices.Concat(s.query, s.headers) {
		m.node.paths(out)
	}
	s.body.paths(out)
	return sortedKeys(out)
}
