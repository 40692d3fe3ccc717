package actions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// Finding is one remark of the lint about a contract that loads. Page is the
// part of docs/contract-format.md that states the rule. SetAside is the author's
// reason where an exception sets the rule aside, "" where none does.
type Finding struct {
	Rule, File    string
	Line, Column  int
	Message, Hint string
	Page          string
	Severity      Severity
	SetAside      string
}

// Exceptions returns the rules the author set aside: "RULE: because".
func (c *Contract) Exceptions() []string {
	var out []string
	for _, e := range c.exceptions {
		out = append(out, e.rule+": "+e.because)
	}
	return out
}

// linter collects findings.
type linter struct {
	c     *Contract
	s     *Set
	root  *strictyaml.Node // the contract's text, nil where its folder is not known
	found []Finding
}

func (l *linter) say(rule string, at strictyaml.Pos, hint, format string, args ...any) {
	r, _ := RuleByID(rule)
	l.found = append(l.found, Finding{
		Rule: rule, File: l.c.places.file, Line: at.Line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Hint: hint, Page: r.Page, Severity: r.Severity,
	})
}

// at is the place of a JSON pointer below one of the contract's keys.
func (l *linter) at(key, pointer string) strictyaml.Pos {
	n := l.root.Get(key)
	if n == nil {
		return l.c.places.root
	}
	return locate(n, pointer)
}

// Lint reads a loaded contract with a reviewer's eyes. s may be nil; what
// depends on the site file is then not looked at. Findings that the contract
// sets aside are left out.
func Lint(c *Contract, s *Set) []Finding {
	return slices.DeleteFunc(LintAll(c, s), func(f Finding) bool { return f.SetAside != "" })
}

// LintAll is Lint with the findings that the contract sets aside, each with the
// author's reason.
func LintAll(c *Contract, s *Set) []Finding {
	l := &linter{c: c, s: s}
	if c.dir != "" {
		l.root, _ = Source(c.dir)
	}
	for _, look := range []func(){
		l.fixtures, l.sentence, l.shown, l.bound, l.expects, l.codes, l.listed, l.identities, l.signed,
		l.suspectNames, l.suspectPlaces, l.namedMembers, l.freePaths, l.grammars, l.rows, l.pollBound, l.captures, l.echoes, l.constants, l.compareAndSet, l.pieces, l.words, l.envelope,
	} {
		look()
	}
	l.setAside()
	return l.inOrder()
}

// setAside marks what was set aside, and remarks on exceptions that set nothing
// aside.
func (l *linter) setAside() {
	for _, e := range l.c.exceptions {
		used := false
		for i, f := range l.found {
			if f.Rule == e.rule {
				l.found[i].SetAside, used = e.because, true
			}
		}
		if !used && (l.s != nil || e.rule != "target-not-listed" && e.rule != "identity-wide") {
			l.say(ruleExceptionUnused, l.c.places.exceptions[e.rule], "take it away", "nothing breaks the rule %s any more", e.rule)
		}
	}
}

// inOrder sorts by place and drops repeats.
func (l *linter) inOrder() []Finding {
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(l.found)
}

// sentence wants every input that chooses the target in the sentence.
func (l *linter) sentence() {
	used := l.shownInputs(false)
	for _, name := range l.c.route.selecting() {
		if l.c.approval.sentence != nil && !used[name] {
			l.say("sentence-selects", l.c.places.sentence, "put {input."+name+"} into the sentence", "the sentence does not name %q, which chooses the target", name)
		}
	}
}

// shown wants every input of a change on the card: an approval covers exactly
// what was shown.
func (l *linter) shown() {
	if l.c.effect == Read {
		return
	}
	used := l.shownInputs(true)
	for _, name := range sortedKeys(l.c.places.inputs) {
		if !used[name] {
			l.say("input-not-shown", l.c.places.inputs[name], "add it to the sentence or under show", "the person who approves does not see the input %q", name)
		}
	}
}

// shownInputs collects the top-level inputs of the sentence, and of the lines.
func (l *linter) shownInputs(lines bool) map[string]bool {
	paths := map[string]bool{}
	for _, p := range l.c.approval.sentence {
		p.node.inputs(paths)
	}
	if lines {
		for _, s := range l.c.approval.show {
			s.node.inputs(paths)
		}
	}
	out := map[string]bool{}
	for p := range paths {
		name, _, _ := strings.Cut(p, ".")
		out[name] = true
	}
	return out
}

// bound wants a member of the result that has an input's name to be compared
// with it.
func (l *linter) bound() {
	for _, name := range sortedKeys(l.c.places.results) {
		if _, both := l.c.places.inputs[name]; !both {
			continue
		}
		compared := slices.ContainsFunc(l.c.checks, func(k validate.CheckSpec) bool {
			pair := []string{k.Left, k.Right}
			return k.Kind == "same" && slices.Contains(pair, "result."+name) && slices.ContainsFunc(pair, func(p string) bool { return !strings.HasPrefix(p, "result.") })
		})
		if !compared {
			l.say("result-not-bound", l.c.places.results[name], "add {same: [result."+name+", input."+name+"]} to checks", "nothing says that the %q of the answer is the one asked about", name)
		}
	}
}

// envelope holds what the daemon writes around data to what it asks of others.
func (l *linter) envelope() {
	for _, f := range validate.LintSchema(l.c.envelope.Doc(), validate.UseEnvelope) {
		l.say("envelope-open", l.c.places.root, f.Hint, "the answer of this action, at %s: %s", f.Pointer, f.Message)
	}
}

// expects wants a schema under every JSON answer that something is taken from,
// or that says a change was not done.
func (l *linter) expects() {
	for _, st := range l.c.allSteps() {
		for i, r := range st.rows {
			if r.Media != validate.MediaJSON || r.Expect != nil {
				continue
			}
			const hint = "write down the whole shape of the answer, closed"
			switch {
			case r.HasSuccess:
				l.say("expect-missing", st.rowPos[i], hint, "a success row reads a body that no schema describes")
			case len(r.Capture) > 0:
				l.say("expect-missing", st.rowPos[i], hint, "a row captures from a body that no schema describes")
			case r.TookEffect != nil && !*r.TookEffect && slices.ContainsFunc(r.Status, func(s int) bool { return s < 300 }):
				l.say("expect-missing", st.rowPos[i], hint, "a row says that nothing was done, from a body that no schema describes")
			}
		}
	}
}

// codes wants every declared code to be given by some row.
func (l *linter) codes() {
	for _, o := range l.c.failures {
		if !l.c.places.codeUses[o.Code] {
			l.say("code-unused", l.c.places.failures[o.Code], "take it away, or give it in a row", "no row gives the code %s", o.Code)
		}
	}
}

// listed wants every target that a case names to list the action.
func (l *linter) listed() {
	for _, u := range l.c.places.unlisted {
		if l.s != nil && len(l.c.targets) > 0 {
			l.say("target-not-listed", u.pos, "the operator adds it under actions, or the case goes", "the target %q does not list the action %s, so every call that would go there is refused", u.name, l.c.action)
		}
	}
	if l.s != nil && len(l.c.targets) == 0 {
		l.say("target-not-listed", l.c.places.root, "the operator adds it under actions", "no target lists the action %s, so every call is refused", l.c.action)
	}
}

// signed wants evidence that is about this call: an old statement about
// something else is signed just as well.
func (l *linter) signed() {
	n := 0
	for _, c := range l.c.checks {
		if c.Signed == nil {
			continue
		}
		if !bindsSigned(c.Signed) {
			l.say("signed-not-bound", l.c.places.signed[n], "compare a claim with an input: claims: {sub: input.NAME}", "no claim of the evidence is compared with an input, so that evidence about something else would do")
		}
		n++
	}
}
