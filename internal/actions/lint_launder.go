package actions

import (
	"maps"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// captures remarks on what steps capture and nobody reads.
func (l *linter) captures() {
	read := l.c.readPaths()
	for _, st := range l.c.allSteps() {
		for i, r := range st.rows {
			for _, name := range sortedKeys(r.Capture) {
				path := st.name + "." + name
				used := slices.ContainsFunc(sortedKeys(read), func(p string) bool { return p == path || strings.HasPrefix(p, path+".") })
				if !used {
					l.say("capture-unused", st.rowPos[i], "take it away, or use it", "nothing reads %s", path)
				}
			}
		}
	}
}

// readPaths lists every value path that something of the contract reads.
func (c *Contract) readPaths() map[string]bool {
	out := map[string]bool{}
	for _, st := range c.allSteps() {
		for _, p := range st.paths() {
			out[p] = true
		}
		for _, r := range st.rows {
			if r.When != nil {
				maps.Copy(out, comparedBy(*r.When))
			}
			for _, picks := range []map[string]validate.PickSpec{r.Success, r.Display, r.Capture} {
				for _, p := range picks {
					maps.Copy(out, pickedFrom(p))
				}
			}
		}
	}
	for _, k := range c.checks {
		out[k.Left], out[k.Right], out[k.At] = true, true, true
		if k.Signed != nil {
			for _, p := range k.Signed.Claims {
				out[p] = true
			}
		}
	}
	for _, s := range c.approval.show {
		s.node.paths(out)
	}
	for _, s := range c.approval.sentence {
		s.node.paths(out)
	}
	return out
}

func pickedFrom(p validate.PickSpec) map[string]bool {
	out := map[string]bool{p.From: true}
	if p.Find != nil {
		maps.Copy(out, comparedBy(p.Find.Where))
	}
	if p.Each != nil {
		for _, sub := range p.Each.Pick {
			maps.Copy(out, pickedFrom(sub))
		}
	}
	return out
}

// comparedBy lists the value paths that a predicate looks at.
func comparedBy(p validate.PredicateSpec) map[string]bool {
	out := map[string]bool{p.Arg.From: true, p.Left.From: true, p.Right.From: true}
	for _, sub := range p.Subs {
		maps.Copy(out, comparedBy(sub))
	}
	return out
}

// echo is a captured value that an answer may only repeat: it stands there under
// the name under which an input was sent.
type echo struct {
	input string // the whole path
	pos   strictyaml.Pos
}

// echoes follows inputs through answers: what may not stand somewhere by itself
// may not come there by way of an answer that repeats it either.
func (l *linter) echoes() {
	known := map[string]echo{}
	for _, st := range l.c.allSteps() {
		l.echoUses(st, known)
		sent := st.sentAs()
		for i, r := range st.rows {
			for _, name := range sortedKeys(r.Capture) {
				if in := sent[lastToken(r.Capture[name])]; in != "" {
					known[st.name+"."+name] = echo{in, st.rowPos[i]}
				}
			}
		}
	}
}

// sentAs maps the names under which a step sends inputs, and the inputs' own
// names, to the inputs, all as words written together.
func (s *stepSpec) sentAs() map[string]string {
	out := map[string]string{}
	for _, p := range s.paths() {
		if name, ok := strings.CutPrefix(p, "input."); ok {
			out[oneWord(name[strings.LastIndex(name, ".")+1:])] = p
		}
	}
	members := slices.Clone(s.query)
	if s.body != nil {
		members = append(members, s.body.members...)
	}
	for _, m := range members {
		used := map[string]bool{}
		m.node.paths(used)
		for _, p := range sortedKeys(used) {
			if strings.HasPrefix(p, "input.") {
				out[oneWord(m.name)] = p
			}
		}
	}
	return out
}

func oneWord(name string) string { return strings.Join(words(name), "") }

// lastToken is the name of the member that a pick takes, "" where it takes none.
func lastToken(p validate.PickSpec) string {
	if p.Kind != validate.PickPointer && p.Kind != validate.PickFind {
		return ""
	}
	tokens := pointerTokens(p.At)
	if len(tokens) == 0 {
		return ""
	}
	return oneWord(tokens[len(tokens)-1])
}

// echoUses looks for echoes in the headers and the path of a step, and in what
// leaves as evidence.
func (l *linter) echoUses(st *stepSpec, known map[string]echo) {
	const hint = "take a value that the service made itself, or bind it: same under checks, find in the pick"
	for _, h := range st.headers {
		used := map[string]bool{}
		h.node.paths(used)
		for _, p := range sortedKeys(used) {
			if e, ok := known[p]; ok {
				l.say("input-laundered", h.pos, hint, "the header %s holds %s, which may be no more than %s repeated, and no input may stand in a header", h.name, p, e.input)
			}
		}
	}
	if st.path != nil {
		for _, p := range st.path.placeholders() {
			if e, ok := known[p.path]; ok && !l.mayStandInPath(e.input, p.mode) {
				l.say("input-laundered", st.path.pos, hint, "the path holds %s, which may be no more than %s repeated, and that may not stand in a path", p.path, e.input)
			}
		}
	}
	for i, r := range st.rows {
		for _, name := range sortedKeys(r.Success) {
			for _, p := range sortedKeys(pickedFrom(r.Success[name])) {
				if e, ok := known[p]; ok && !l.c.comparedWith("result."+name, e.input) {
					l.say("input-laundered", st.rowPos[i], hint, "%s of the result is %s, which may be no more than %s repeated, and the agent's own words are no evidence", name, p, e.input)
				}
			}
		}
	}
}

// mayStandInPath says whether an input could stand in a path by itself.
func (l *linter) mayStandInPath(path string, mode byte) bool {
	view := schemaView{root: l.c.inputDoc}
	s, _, _ := view.property(view.root, strings.TrimPrefix(path, "input."))
	if s == nil {
		return false
	}
	pattern, _ := s["pattern"].(string)
	return s["enum"] != nil || s["const"] != nil || s["type"] == "integer" || pattern != "" && overAlphabet(pattern, pathRune(mode != 's'))
}

// comparedWith says whether a check same compares the two.
func (c *Contract) comparedWith(a, b string) bool {
	return slices.ContainsFunc(c.checks, func(k validate.CheckSpec) bool {
		return k.Kind == "same" && (k.Left == a && k.Right == b || k.Left == b && k.Right == a)
	})
}
