package actions

import (
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// freePaths wants something in front of the first input of a path that the
// agent did not say.
func (l *linter) freePaths() {
	view := schemaView{root: l.c.inputDoc}
	for _, st := range l.c.allSteps() {
		if st.path == nil || len(st.path.segments) == 0 {
			continue
		}
		for _, p := range st.path.segments[0] {
			rest, input := strings.CutPrefix(p.path, "input.")
			if !input || slices.Contains(l.c.route.by, rest) {
				continue
			}
			if s, _, _ := view.property(view.root, rest); s["enum"] == nil && s["const"] == nil {
				l.say("path-free", st.path.pos, "begin the path with a folder of the author's or a constant of the target",
					"the first segment of the path is %s, so the agent chooses the endpoint", p.path)
			}
		}
	}
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
