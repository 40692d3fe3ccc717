package actions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// Finding is one remark of the lint about a contract that loads. Page is the
// part of docs/contract-format.md that explains it.
type Finding struct {
	Rule, File    string
	Line, Column  int
	Message, Hint string
	Page          string
}

// lintRules are the rules a contract may set aside with an exception, each with
// its part of docs/contract-format.md. What the loader refuses cannot be set
// aside and is not here. The ids never change.
var lintRules = map[string]string{
	"fixtures":          "Fixtures",
	"fixture-not-done":  "Outcomes",
	"sentence-selects":  "Approval",
	"input-not-shown":   "Approval",
	"result-not-bound":  "Checks",
	"expect-missing":    "Outcomes",
	"code-unused":       "Top level",
	"target-not-listed": "Site file",
	"exception-unused":  "Top level",
	"signed-not-bound":  "Checks",
}

// LintRules returns the ids of all lint rules, sorted.
func LintRules() []string { return sortedKeys(lintRules) }

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
	found []Finding
}

func (l *linter) say(rule string, at strictyaml.Pos, hint, format string, args ...any) {
	l.found = append(l.found, Finding{
		Rule: rule, File: l.c.places.file, Line: at.Line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Hint: hint, Page: lintRules[rule],
	})
}

// Lint reads a loaded contract with a reviewer's eyes. s may be nil; what
// depends on the site file is then not looked at. Findings that the contract
// sets aside are left out.
func Lint(c *Contract, s *Set) []Finding {
	l := &linter{c: c, s: s}
	l.fixtures()
	l.sentence()
	l.shown()
	l.bound()
	l.expects()
	l.codes()
	l.listed()
	l.signed()
	return l.withoutExceptions()
}

// withoutExceptions drops what was set aside, and remarks on exceptions that
// set nothing aside.
func (l *linter) withoutExceptions() []Finding {
	for _, e := range l.c.exceptions {
		used := slices.ContainsFunc(l.found, func(f Finding) bool { return f.Rule == e.rule })
		if !used && e.rule != "exception-unused" && (l.s != nil || e.rule != "target-not-listed") {
			l.say("exception-unused", l.c.places.exceptions[e.rule], "take it away", "nothing breaks the rule %s any more", e.rule)
		}
	}
	return slices.DeleteFunc(l.found, func(f Finding) bool {
		return slices.ContainsFunc(l.c.exceptions, func(e exception) bool { return e.rule == f.Rule })
	})
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

// expects wants a schema under every JSON success.
func (l *linter) expects() {
	for i, r := range l.c.request.rows {
		if r.HasSuccess && r.Media == validate.MediaJSON && r.Expect == nil {
			l.say("expect-missing", l.c.places.success[i], "write down the whole shape of the answer, closed", "a success row reads a body that no schema describes")
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

// listed wants at least one target that lists the action.
func (l *linter) listed() {
	if l.s != nil && len(l.c.targets) == 0 {
		l.say("target-not-listed", l.c.places.root, "the operator adds it under actions", "no target lists the action %s, so every call is refused", l.c.action)
	}
}

// maxFixtureFile is what playing a fixture reads too.
const maxFixtureFile = 4 << 20

// fixtureKinds are what a fixture's file name begins with.
var fixtureKinds = []string{"accepted", "near-miss", "failure", "hostile"}

// fixtures wants one of each kind that proves something, and proof for every
// row that says nothing was done.
func (l *linter) fixtures() {
	dir := filepath.Join(l.c.dir, "fixtures")
	entries, _ := os.ReadDir(dir)
	have := map[string]bool{}
	var shows []fixtureAnswer
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		i := slices.IndexFunc(fixtureKinds, func(k string) bool { return strings.HasPrefix(e.Name(), k) })
		if e.IsDir() || i < 0 || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		want, answers := readFixture(filepath.Join(dir, e.Name()))
		// A file that is called accepted and wants a failure accepts nothing.
		if want != nil && want.Truth == (fixtureKinds[i] == "accepted") {
			have[fixtureKinds[i]] = true
		}
		shows = append(shows, answers...)
	}
	for _, k := range fixtureKinds[:3] {
		if !have[k] {
			l.say("fixtures", l.c.places.root, "add fixtures/"+k+"-….yaml with want: {ok: "+strconv.FormatBool(k == "accepted")+", …}", "there is no fixture of the kind %s", k)
		}
	}
	for i, r := range l.c.request.rows {
		if r.NotDone && !slices.ContainsFunc(shows, func(a fixtureAnswer) bool { return a.shows(r) }) {
			l.say("fixture-not-done", l.c.places.success[i], "add a fixture with this answer and the code it gives", "a row says that nothing was done, and no fixture shows it")
		}
	}
}

// fixtureAnswer is what the lint reads of a fixture: the statuses answered and
// the code wanted.
type fixtureAnswer struct {
	status int
	code   string
}

func (a fixtureAnswer) shows(r validate.RowSpec) bool {
	if !slices.Contains(r.Status, a.status) || a.code == "" {
		return false
	}
	f := r.Failure
	codes := []string{f.Code, f.Other}
	for _, c := range f.Map {
		codes = append(codes, c)
	}
	return slices.Contains(codes, a.code)
}

// readFixture returns want.ok, nil for a file that is no fixture (a body lies
// here too) or cannot be read, and what it shows. Its mistakes are told where
// it is played.
func readFixture(path string) (ok *strictyaml.Node, shows []fixtureAnswer) {
	root := readFile(path, strictyaml.Limits{Bytes: maxFixtureFile}).Root()
	want := root.Get("want")
	if ok = want.Get("ok"); ok == nil || ok.Kind != strictyaml.Bool {
		return nil, nil
	}
	code, answers := want.Get("code"), root.Get("answers")
	if answers == nil || code == nil {
		return ok, nil
	}
	for _, a := range answers.Items {
		if st, is := intOf(a.Get("status").Value()); is {
			shows = append(shows, fixtureAnswer{st, code.Text})
		}
	}
	return ok, shows
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
