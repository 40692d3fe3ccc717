package actions

import (
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// freePaths wants something in front of the first input, or the first captured
// value, of a path that neither the agent nor an answer said.
func (l *linter) freePaths() {
	view := schemaView{root: l.c.inputDoc}
	for _, st := range l.c.allSteps() {
		if st.path == nil || len(st.path.segments) == 0 {
			continue
		}
		for _, p := range st.path.segments[0] {
			root, rest, _ := strings.Cut(p.path, ".")
			who := "an answer"
			switch {
			case root == "" || root == "target" || root == "call":
				continue
			case root != "input" && l.c.capturesOwn(root, rest):
				continue
			case root == "input":
				s, _, _ := view.property(view.root, rest)
				if s["enum"] != nil || s["const"] != nil || slices.Contains(l.c.route.by, rest) {
					continue
				}
				who = "the agent"
			}
			l.say("path-free", st.path.pos, "begin the path with a folder of the author's or a constant of the target",
				"the first segment of the path is %s, so %s chooses the endpoint", p.path, who)
		}
	}
}

// capturesOwn says whether a captured value is one of the author's own texts,
// whichever row captured it.
func (c *Contract) capturesOwn(step, path string) bool {
	name, inner, dotted := strings.Cut(path, ".")
	for _, st := range c.allSteps() {
		if st.name != step {
			continue
		}
		for _, shapes := range st.captures {
			s, has := shapes[name]
			if has && dotted {
				s, _, _ = plainView(s).property(s, inner)
			}
			if _, closed := closedSet(flatShape(s)); has && !closed {
				return false
			}
		}
	}
	return true
}

var (
	// grammarMembers hold expressions in one service or another.
	grammarMembers = []string{
		"filter", "where", "expr", "selector", "labelselector", "fieldselector", "condition", "predicate", "formula",
		"regex", "regexp", "xpath", "jsonpath", "jmespath", "promql", "logql", "flux", "cypher", "cql", "wql", "sparql", "lucene",
	}
	// operators are the author's words around a value that make an expression
	// of a text.
	operators = regexp.MustCompile(`['"=(){}\[\]<>|&~]|\b(AND|OR|NOT)\b`)
)

// grammars remarks on free text between the author's operators.
func (l *linter) grammars() {
	for _, st := range l.c.allSteps() {
		for _, m := range st.query {
			l.grammar(m)
		}
		if st.body == nil || st.bodyKind == bodyText {
			continue
		}
		for _, m := range st.body.members {
			l.grammar(m)
		}
	}
}

func (l *linter) grammar(m valueMember) {
	named := slices.Contains(grammarMembers, strings.Join(words(m.name), ""))
	l.expression(m.name, m.node, named)
}

// expression walks a value. named says that its member's name promises an
// expression, so that free text alone is one too.
func (l *linter) expression(member string, v *valueNode, named bool) {
	switch {
	case v == nil:
		return
	case v.op == opFrom && named:
		l.freeInExpression(member, v)
	case v.op == opConcat || v.op == opJoin:
		text := v.sep
		for _, a := range v.args {
			if s, ok := a.lit.(string); ok && a.op == opConst {
				text += s
			}
		}
		if named || operators.MatchString(text) {
			for _, a := range v.args {
				l.freeInExpression(member, a)
			}
			return
		}
	}
	for _, a := range v.args {
		l.expression(member, a, named)
	}
	for _, sub := range v.members {
		l.grammar(sub)
	}
}

// freeInExpression remarks on an input that may hold more than a word.
func (l *linter) freeInExpression(member string, v *valueNode) {
	view := schemaView{root: l.c.inputDoc}
	used := map[string]strictyaml.Pos{}
	v.inputPlaces(used)
	for _, name := range sortedKeys(used) {
		s, _, _ := view.property(view.root, name)
		if s != nil && schemaKind(s) == kindList {
			s = view.resolve(view.items(s))
		}
		if s != nil && !plainWord(s) && !slices.Contains(l.c.route.by, name) {
			l.say("input-in-grammar", used[name], "give it an enum or an anchored pattern over [A-Za-z0-9._-], or send it as a value of its own",
				"input.%s may hold more than a word, and stands inside the expression of %q", name, member)
		}
	}
}

// inputPlaces collects every input path in the value with its place.
func (v *valueNode) inputPlaces(out map[string]strictyaml.Pos) {
	if v == nil {
		return
	}
	if rest, ok := strings.CutPrefix(v.path, "input."); ok && v.op == opFrom {
		out[rest] = v.pos
	}
	for _, a := range v.args {
		a.inputPlaces(out)
	}
	for _, m := range v.members {
		m.node.inputPlaces(out)
	}
}
