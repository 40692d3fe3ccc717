package actions

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

var errTooMany = fmt.Errorf("more than %d folders", maxContracts)

func hexDigest(d [32]byte) string { return hex.EncodeToString(d[:]) }

// unlistedName bounds a list's input while no site file is known.
const unlistedName = 64

// bind finishes a contract against a site file: it fills lists in, holds the
// contract to its targets and compiles everything. st is nil where only the
// contract itself is read.
func (d *draft) bind(st *site) {
	if d.root == nil || d.inputNode == nil || d.c.inputDoc == nil {
		return // told already
	}
	doc := map[string]any{"contract": d.root.Value()}
	d.fillList(st, doc)
	d.bindKeys(st, doc)
	if st != nil && st.f.Root() != nil {
		d.bindTargets(st)
	}
	if d.schemaLint(d.inputNode, d.c.inputDoc, validate.UseInput) {
		s, err := validate.CompileSchema("input", d.c.inputDoc)
		if err != nil {
			d.bad(d.inputNode.Pos, "schema-compile", "", "the input schema does not compile: %v", err)
		}
		d.c.inputSchema = s
	}
	if d.f.Count() == 0 {
		d.compileReaders()
	}
	if d.f.Count() > 0 {
		return
	}
	if names := d.root.Get("lookups").Keys(); len(names) > 1 {
		doc["lookups"] = anyTexts(names) // they run in this order, which the canonical form does not keep
	}
	d.c.digest = digest("contract", doc)
	env, err := envelopeSchema(d.c)
	if err != nil {
		d.bad(d.root.Pos, "schema-compile", "", "the schema of this action's answers does not compile: %v", err)
	}
	d.c.envelope = env
	d.c.places = d.remember()
	for _, s := range d.c.allSteps() {
		s.node = nil // only the draft looks at the text
	}
}

func anyTexts(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

// fillList puts the names of the operator's list into the input schema.
func (d *draft) fillList(st *site, doc map[string]any) {
	r := d.c.route
	if r.list == "" || len(r.by) != 1 {
		return
	}
	s := d.in.written(r.by[0])
	if s == nil {
		return
	}
	if st == nil || st.lists[r.list] == nil {
		s["maxLength"] = num(unlistedName)
	}
	if st == nil {
		return
	}
	l := st.lists[r.list]
	if root := st.f.Root(); l == nil && (root == nil || root.Kind != strictyaml.Mapping) {
		return // there is no site file to have one: told already
	}
	if l == nil {
		d.bad(d.root.Get("route").Get("list").Pos, "list-unknown", strictyaml.DidYouMean(r.list, slices.Sorted(maps.Keys(st.lists))), "the site file has no list %q", r.list)
		return
	}
	names := []any{}
	for _, k := range slices.Sorted(maps.Keys(l.entries)) {
		names = append(names, k)
		e := l.entries[k]
		d.c.route.cases = append(d.c.route.cases, routeCase{
			values: []any{k}, target: e.target, with: e.with, pos: d.root.Get("route").Get("list").Pos,
		})
	}
	s["enum"] = names
	doc["list"] = st.listDocs[r.list]
}

func (d *draft) compileReaders() {
	for _, s := range d.c.allSteps() {
		rd, err := validate.Compile(d.c.action, validate.ReaderSpec{
			Step: readerKinds[s.kind], Change: d.c.effect != Read, Rows: s.rows, Result: d.c.resultDoc,
			Display: d.c.display, Checks: d.c.checks,
		})
		if err != nil {
			d.bad(s.node.Get("outcomes").Pos, "outcome", "", "the outcomes cannot be used: %v", err)
			continue
		}
		s.reader = rd
	}
}

// bindTargets looks at every target that the route can end at.
func (d *draft) bindTargets(st *site) {
	told := map[string]bool{}
	reach := map[string]bool{}
	for _, c := range d.c.route.cases {
		t := st.targets[c.target]
		if t == nil {
			d.bindRefused(c, st, told)
			continue
		}
		d.bindConstants(c, t, told)
		if !t.AllowsAction(d.c.action) {
			if d.c.route.list == "" {
				d.c.places.unlisted = append(d.c.places.unlisted, unlistedTarget{t.name, c.pos})
			}
			continue // the operator does not let it go there; a call is refused
		}
		if t.ssh != nil {
			d.tell(told, c.pos, "not-in-this-release", "let the action go to a target over HTTPS", "the target %q is reached over SSH; steps over SSH belong to the format, but this release does not take them yet", t.name)
			continue
		}
		d.bindRepository(c, t, st.identities[t.identity], told)
		reach[t.name] = true
		if !told["target\x00"+t.name] {
			told["target\x00"+t.name] = true
			d.bindTarget(c, t, st, told)
		}
	}
	d.c.targets = slices.Sorted(maps.Keys(reach))
}

// bindRefused looks at a target that the site file does not have, or has with a
// mistake: what was read of it is compared all the same, so that every mistake
// is told at once.
func (d *draft) bindRefused(c routeCase, st *site, told map[string]bool) {
	if told[c.target] {
		return
	}
	told[c.target] = true
	t := st.refused[c.target]
	if t == nil {
		st.unknownTarget(d.f, c.pos, c.target)
		return
	}
	if t.effects != nil && t.actions[d.c.action] {
		d.ceiling(c, t)
	}
}

func (d *draft) ceiling(c routeCase, t *Target) {
	if d.c.effect != 0 && !t.AllowsEffect(d.c.effect) {
		d.bad(c.pos, "effect-ceiling", "the operator writes effects there", "the target %q does not take the effect %s", t.name, d.c.effect)
	}
}

// bindTarget holds the contract to what one target takes.
func (d *draft) bindTarget(c routeCase, t *Target, st *site, told map[string]bool) {
	d.ceiling(c, t)
	id := st.identities[t.identity]
	if h := d.c.idem.header; h != "" && (id != nil && id.headerName == h || t.headers[h] != "") {
		d.bad(d.root.Get("idempotency").Pos, "header-refused", "", "the header %s is taken at the target %q", h, t.name)
	}
	if id != nil && t.headers[id.headerName] != "" {
		d.bad(c.pos, "header-refused", "", "the target %q sets the header of its own identity", t.name)
	}
	if id != nil && id.hole != nil {
		d.bindKey(t, id)
	}
	for _, s := range d.c.allSteps() {
		d.bindHeaders(s, t, id)
		if id != nil && id.hole != nil && s.node != nil {
			d.bindHole(s, t, id, told)
		}
		if s.path != nil {
			d.bindPath(s, t, told)
		}
	}
}

func (d *draft) bindPath(s *stepSpec, t *Target, told map[string]bool) {
	if s.reads != "" && (!s.path.constant() || !t.readByPost[s.path.text]) {
		d.tell(told, s.path.pos, "read-by-post", "the operator lists the exact path there under read_by_post", "the target %q does not list this path as one that reads by POST", t.name)
	}
	for _, p := range s.path.placeholders() {
		if p.mode == '%' && !t.keepsSlash {
			d.tell(told, s.path.pos, "escaped-slash", "the operator writes keeps_escaped_slash: true where the remote system keeps %2F apart", "{%s%%} needs the target %q to keep an escaped slash", p.path, t.name)
		}
	}
}

func (d *draft) bindHeaders(s *stepSpec, t *Target, id *IdentitySpec) {
	for _, h := range s.headers {
		switch {
		case id != nil && h.name == id.headerName:
			d.bad(h.pos, "header-refused", "", "the header %s belongs to the identity of the target %q", h.name, t.name)
		case t.headers[h.name] != "":
			d.bad(h.pos, "header-refused", "", "the target %q sets the header %s itself", t.name, h.name)
		case !slices.Contains(headerAllowList, h.name) && !t.versionHeader[h.name]:
			d.bad(h.pos, "header-refused", "allowed are "+strings.Join(headerAllowList, ", ")+" and those the target names under version_headers", "a contract cannot set the header %s at the target %q", h.name, t.name)
		}
	}
}

// bindConstants checks every target.x of the contract for one case.
func (d *draft) bindConstants(c routeCase, t *Target, told map[string]bool) {
	r := Route{target: t, with: c.with}
	for name := range c.with {
		if _, both := t.with[name]; both {
			d.tell(told, c.pos, "with", "", "the constant %q stands in the route and at the target %q", name, t.name)
		}
	}
	for _, u := range d.uses {
		v, ok := r.With(u.path)
		if !ok {
			d.tell(told, u.pos, "value-path", "write it under `with` in the route or at the target", "there is no target.%s for the target %q", u.path, t.name)
			continue
		}
		if !kindOf(v).fits(u.want) {
			d.tell(told, u.pos, "value-type", "", "target.%s is %s at the target %q; this place needs %s", u.path, kindOf(v), t.name, u.want)
			continue
		}
		if u.mode == 0 {
			continue
		}
		if _, err := operatorPath(v, u.mode); err != nil {
			d.tell(told, u.pos, "path", "", "target.%s cannot stand in a path: %v", u.path, err)
		}
	}
}

// bindRepository wants the one repository that a token is narrowed to.
func (d *draft) bindRepository(c routeCase, t *Target, id *IdentitySpec, told map[string]bool) {
	if id == nil || id.repositoriesFrom == "" {
		return
	}
	v, ok := Route{target: t, with: c.with}.With(id.repositoriesFrom)
	name, text := v.(string)
	switch {
	case !ok:
		d.tell(told, c.pos, "value-path", "write it under `with` in the route or at the target", "there is no target.%s for the target %q, to whose one repository the identity %q is narrowed", id.repositoriesFrom, t.name, id.name)
	case !text || !repository.MatchString(name) || name == "." || name == "..":
		d.tell(told, c.pos, "value-type", "the repository's name alone, without its owner", "target.%s is no name of a repository, to which the identity %q is narrowed at the target %q", id.repositoriesFrom, id.name, t.name)
	}
}

// tell reports a problem once, however many cases have it.
func (d *draft) tell(told map[string]bool, at strictyaml.Pos, rule, hint, format string, args ...any) {
	key := fmt.Sprint(at, rule, fmt.Sprintf(format, args...))
	if !told[key] {
		told[key] = true
		d.bad(at, rule, hint, format, args...)
	}
}

// places remembers where things stand, for the lint.
type places struct {
	file       string
	root       strictyaml.Pos
	sentence   strictyaml.Pos
	inputs     map[string]strictyaml.Pos
	results    map[string]strictyaml.Pos
	failures   map[string]strictyaml.Pos
	exceptions map[string]strictyaml.Pos
	codeUses   map[string]bool
	signed     []strictyaml.Pos // of each check signed
	unlisted   []unlistedTarget
}

// unlistedTarget is a target that a case of the route names and that does not
// list the action.
type unlistedTarget struct {
	name string
	pos  strictyaml.Pos
}

func (d *draft) remember() places {
	p := places{
		file: d.f.Name(), root: d.root.Pos, sentence: d.c.approval.pos,
		inputs: d.inputPlaces(), results: keyPlaces(d.resultNode.Get("properties")),
		failures: keyPlaces(d.root.Get("failures")), exceptions: map[string]strictyaml.Pos{}, codeUses: d.codeUses,
		signed: d.c.places.signed, unlisted: d.c.places.unlisted,
	}
	if n := d.root.Get("exceptions"); n != nil {
		for _, it := range n.Items {
			p.exceptions[it.Get("rule").Text] = it.Pos
		}
	}
	return p
}

// inputPlaces finds every input at the top, also those that stand under allOf or
// behind a reference.
func (d *draft) inputPlaces() map[string]strictyaml.Pos {
	out := keyPlaces(d.inputNode.Get("properties"))
	names := d.in.names()
	top := d.in.propertyNames(d.in.flat(d.in.root), refDepth)
	for _, ptr := range sortedKeys(names) {
		if _, known := out[names[ptr]]; !known && slices.Contains(top, names[ptr]) {
			out[names[ptr]] = locate(d.inputNode, ptr)
		}
	}
	return out
}

func keyPlaces(n *strictyaml.Node) map[string]strictyaml.Pos {
	out := map[string]strictyaml.Pos{}
	if n != nil {
		for _, m := range n.Members {
			out[m.Key] = m.KeyPos
		}
	}
	return out
}

var errUnusable = errors.New("a value that was not loaded")
