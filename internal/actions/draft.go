package actions

import (
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// draft is a contract while it is being read. Every mistake goes into f; a
// draft with a mistake never becomes a Contract.
type draft struct {
	f    *strictyaml.File
	c    *Contract
	in   schemaView
	root *strictyaml.Node

	inputNode  *strictyaml.Node
	resultNode *strictyaml.Node
	resultView schemaView
	uses       []targetUse // every target.x, checked once the routes are known
	codeUses   map[string]bool
	signedBy   []signedUse // every key set that a check names

	requestNode *strictyaml.Node
	captured    map[string]*gathered // by lookup's name, and request
	unnamed     bool                 // a lookup's name was refused, so that paths to it lead nowhere
	polls       bool                 // the contract has a poll
	step        *stepSpec            // the one that is being read, nil between them
	place       place                // where the value that is being read stands
}

// targetUse is one mention of an operator's constant.
type targetUse struct {
	path string
	want kind
	mode byte // in a path: 's' segment, '/' or '%'; 0 elsewhere
	pos  strictyaml.Pos
}

func (d *draft) bad(at strictyaml.Pos, rule, hint, format string, args ...any) {
	d.f.Report(at, rule, hint, format, args...)
}

// topKeys are the keys of a contract, laterKeys those that this release does
// not take.
var (
	topKeys = []string{
		"contract", "action", "version", "summary", "owner", "effect", "input", "route", "approval",
		"lookups", "request", "poll", "reconcile", "result", "display", "checks", "retry", "idempotency", "at_most_once", "failures", "exceptions",
	}
	laterKeys = map[string]string{"confirm": "confirm: required"}
)

const (
	maxSummary  = 200 // what discovery shows an agent
	maxOwner    = 100
	maxBecause  = 400
	maxMessage  = 200 // of a contract's own code
	maxFailures = 32
)

// decode reads the whole contract.
func (d *draft) decode() {
	root := d.f.Root()
	if root == nil || !d.f.Is(root, strictyaml.Mapping, "a contract") {
		return
	}
	d.root = root
	d.topLevel(root)
	d.heads(root)
	d.input(d.f.Require(root, "a contract", "input"))
	d.route(d.f.Require(root, "a contract", "route"))
	d.result(d.f.Require(root, "a contract", "result"))
	d.displays(root.Get("display"))
	d.ownCodes(root.Get("failures"))
	d.steps(root)
	d.semanticChecks(root.Get("checks"))
	d.tookEffectBound()
	d.once(root)
	d.approve(root.Get("approval"))
	d.setAside(root.Get("exceptions"))
}

func (d *draft) topLevel(root *strictyaml.Node) {
	d.f.Map(root, "a contract", append(slices.Clone(topKeys), "confirm")...)
	for _, m := range root.Members {
		if word, later := laterKeys[m.Key]; later {
			d.later(m.KeyPos, word)
		}
	}
}

// later refuses what the format has and this release has not.
func (d *draft) later(at strictyaml.Pos, word string) {
	d.bad(at, "not-in-this-release", "", "%s belongs to the format, but this release does not take it yet", word)
}

// version reads a semantic version. YAML takes 1.0 for a number, and quotes would
// not make a version of it.
func (d *draft) version(n *strictyaml.Node) {
	const hint = "write three numbers, such as 1.0.0"
	if n != nil && n.Kind == strictyaml.Number {
		d.bad(n.Pos, "type", hint, "version must be text with three numbers, not the number %s", n.Text)
		return
	}
	s, ok := d.f.Text(n, "version")
	if ok && !semanticVers.MatchString(s) {
		d.bad(n.Pos, "version", hint, "%q is no semantic version", s)
	}
	d.c.version = s
}

// heads reads what a contract says about itself.
func (d *draft) heads(root *strictyaml.Node) {
	const what = "a contract"
	if n := d.f.Require(root, what, "contract"); n != nil {
		d.f.Word(n, "contract", "v1")
	}
	if n := d.f.Require(root, what, "action"); n != nil {
		s, ok := d.f.Text(n, "action")
		if ok && !actionName.MatchString(s) {
			d.bad(n.Pos, "action", "small letters, digits and _, three to 64 of them", "%q is no name of an action", s)
		}
		d.c.action = s
	}
	d.version(d.f.Require(root, what, "version"))
	d.c.summary = d.sentence(d.f.Require(root, what, "summary"), "summary", maxSummary)
	d.c.owner = d.sentence(d.f.Require(root, what, "owner"), "owner", maxOwner)
	if n := d.f.Require(root, what, "effect"); n != nil {
		if s, ok := d.f.Word(n, "effect", "read", "change", "destroy"); ok {
			d.c.effect = effectNames[s]
		}
	}
}

// sentence reads one line of the author's words.
func (d *draft) sentence(n *strictyaml.Node, what string, most int) string {
	s, ok := d.f.Text(n, what)
	if !ok {
		return ""
	}
	switch {
	case strings.TrimSpace(s) == "":
		d.bad(n.Pos, "text", "", "%s is empty", what)
	case len([]rune(s)) > most:
		d.bad(n.Pos, "text", "", "%s has more than %d characters", what, most)
	case !oneLine(s):
		d.bad(n.Pos, "text", "", "%s must be one line without control or bidirectional characters", what)
	}
	return strings.TrimSpace(s)
}

// schemaLint reports what the schema lint finds, at the place in the file.
func (d *draft) schemaLint(n *strictyaml.Node, doc any, use validate.SchemaUse) bool {
	found := validate.LintSchema(doc, use)
	for _, f := range found {
		d.bad(locate(n, f.Pointer), f.Rule, f.Hint, "%s", f.Message)
	}
	return len(found) == 0
}

// locate finds the deepest place of a JSON pointer under a node.
func locate(n *strictyaml.Node, pointer string) strictyaml.Pos {
	at := n.Pos
	pointer = strings.TrimPrefix(pointer, "#")
	if pointer == "" {
		return at
	}
	for _, tok := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		tok = unescapePointer.Replace(tok)
		next := (*strictyaml.Node)(nil)
		switch n.Kind {
		case strictyaml.Mapping:
			for _, m := range n.Members {
				if m.Key == tok {
					next, at = m.Value, m.KeyPos
				}
			}
		case strictyaml.Sequence:
			for i, it := range n.Items {
				if itoa(i) == tok {
					next, at = it, it.Pos
				}
			}
		}
		if next == nil {
			return at
		}
		n = next
	}
	return at
}

// input reads the input schema. For a list route the loader fills the list's
// names in later, so the schema is compiled by bind.
func (d *draft) input(n *strictyaml.Node) {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "input") {
		return
	}
	d.inputNode = n
	doc, _ := n.Value().(map[string]any)
	d.c.inputDoc = doc
	d.in = schemaView{root: doc}
	if doc["type"] != "object" {
		d.bad(n.Pos, "input", "write type: object", "the input must be an object")
	}
	d.requiredNames(n, doc)
	names := d.in.names()
	for _, ptr := range sortedKeys(names) {
		name, at := names[ptr], locate(n, ptr)
		if w := forbiddenWord(name); w != "" {
			d.bad(at, "input-name", "an input holds a fact of the task; what it would choose belongs to the route or the site file", "the input %q contains the word %q", name, w)
		} else if !inputName.MatchString(name) {
			d.bad(at, "input-name", "letters, digits, _ and -, beginning with a letter", "%q is no name of an input", name)
		}
	}
}

// requiredNames refuses a required input that the closed object does not have:
// no call could ever be right.
func (d *draft) requiredNames(n *strictyaml.Node, doc map[string]any) {
	required, _ := doc["required"].([]any)
	for _, r := range required {
		name, ok := r.(string)
		if declared, _ := d.in.member(d.in.flat(doc), name); ok && declared == nil {
			d.bad(locate(n, "/required"), "input", strictyaml.DidYouMean(name, d.in.propertyNames(d.in.flat(doc), refDepth)), "the input requires %q and has no property of that name", name)
		}
	}
}

// result reads the schema of data.
func (d *draft) result(n *strictyaml.Node) {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "result") {
		return
	}
	d.resultNode = n
	doc, _ := n.Value().(map[string]any)
	d.c.resultDoc = doc
	d.resultView = schemaView{root: doc}
	if doc["type"] != "object" {
		d.bad(n.Pos, "result", "write type: object", "the result must be an object")
	}
	if !d.schemaLint(n, doc, validate.UseResult) {
		return
	}
	s, err := validate.CompileSchema("result", doc)
	if err != nil {
		d.bad(n.Pos, "schema-compile", "", "the result schema does not compile: %v", err)
		return
	}
	d.c.resultSchema = s
}

const (
	maxDisplay      = 16000 // characters of one display text
	maxDisplayLines = 1000
)

func (d *draft) displays(n *strictyaml.Node) {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "display") {
		return
	}
	d.c.display = map[string]validate.DisplayBound{}
	for _, m := range n.Members {
		if !memberName.MatchString(m.Key) {
			d.bad(m.KeyPos, "display", "small letters, digits and _", "%q is no name of a display text", m.Key)
		}
		if !d.f.Map(m.Value, "a display text", "max", "lines") {
			continue
		}
		var b validate.DisplayBound
		if v, ok := d.f.Whole(d.f.Require(m.Value, "a display text", "max"), "max", 1, maxDisplay); ok {
			b.Max = int(v)
		}
		if v, ok := d.f.Whole(d.f.Require(m.Value, "a display text", "lines"), "lines", 1, maxDisplayLines); ok {
			b.Lines = int(v)
		}
		d.c.display[m.Key] = b
	}
}
