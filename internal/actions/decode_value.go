package actions

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// functionNames are the keys that make a mapping a function, besides from,
// const and each.
var functionNames = []string{"concat", "base64", "lower", "text", "json_text", "join", "add_seconds"}

// scope holds the names given by each, with the schema of their elements.
type scope map[string]map[string]any

// functionOf says which function a mapping is, "" for an object. A mapping is a
// function where its keys are exactly those of one; a mapping that begins like
// a function and has a slip in it is treated as that function, so that the slip
// is reported and not sent.
func (d *draft) functionOf(n *strictyaml.Node) string {
	if n.Kind != strictyaml.Mapping {
		return ""
	}
	if from := n.Get("from"); from != nil {
		if len(n.Members) == 1 || len(n.Members) == 2 && n.Get("optional") != nil || d.looksLikePath(from) {
			return "from"
		}
	}
	if n.Get("each") != nil && (n.Get("give") != nil || n.Get("as") != nil) {
		return "each"
	}
	if len(n.Members) != 1 {
		return ""
	}
	key := n.Members[0].Key
	if key == "const" || slices.Contains(functionNames, key) {
		return key
	}
	return ""
}

func (d *draft) looksLikePath(n *strictyaml.Node) bool {
	root, _, dotted := strings.Cut(n.Text, ".")
	_, captured := d.gatheredBy(root)
	return n.Kind == strictyaml.String && dotted && (captured || slices.Contains([]string{"input", "target", "call", stepRequest}, root))
}

// value reads a value node; want is what the place needs. It returns nil after
// reporting.
func (d *draft) value(n *strictyaml.Node, want kind, sc scope) *valueNode {
	if n == nil {
		return nil
	}
	switch fn := d.functionOf(n); fn {
	case "":
	case "from":
		return d.from(n, want, sc)
	case "const":
		return d.constant(n.Get("const"), want)
	case "each":
		return d.each(n, want, sc)
	default:
		return d.function(n, fn, want, sc)
	}
	switch n.Kind {
	case strictyaml.Mapping:
		return d.object(n, want, sc)
	case strictyaml.Sequence:
		return d.listOf(n, want, sc)
	}
	return d.constant(n, want)
}

func (d *draft) wants(at strictyaml.Pos, have, want kind) bool {
	if have.fits(want) {
		return true
	}
	hint := ""
	if have == kindNumber && want == kindText {
		hint = "put {text: …} around a number"
	}
	d.bad(at, "value-type", hint, "this place needs %s, not %s", want, have)
	return false
}

func (d *draft) constant(n *strictyaml.Node, want kind) *valueNode {
	v := n.Value()
	if !d.wants(n.Pos, kindOf(v), want) {
		return nil
	}
	return &valueNode{op: opConst, pos: n.Pos, lit: v}
}

func (d *draft) object(n *strictyaml.Node, want kind, sc scope) *valueNode {
	if !d.wants(n.Pos, kindObject, want) {
		return nil
	}
	out := &valueNode{op: opObject, pos: n.Pos}
	for _, m := range n.Members {
		if v := d.member(m, kindAny, sc); v != nil {
			out.members = append(out.members, valueMember{m.Key, v, m.KeyPos})
		}
	}
	return out
}

// member reads one member of a body or a query and holds the caller's values
// out of members that a remote system would run or follow. also are the names that
// a server may read out of its key.
func (d *draft) member(m strictyaml.Member, want kind, sc scope, also ...string) *valueNode {
	v := d.value(m.Value, want, sc)
	if v == nil {
		return nil
	}
	if (ForbiddenMember(m.Key) || slices.ContainsFunc(also, forbiddenMember)) && v.usesInput() {
		d.bad(m.KeyPos, "input-member", "write a constant, or send the value under another name", "no input and no answer may be part of a member named %q", m.Key)
	}
	return v
}

func (d *draft) listOf(n *strictyaml.Node, want kind, sc scope) *valueNode {
	if !d.wants(n.Pos, kindList, want) {
		return nil
	}
	out := &valueNode{op: opList, pos: n.Pos}
	for _, it := range n.Items {
		if v := d.value(it, kindAny, sc); v != nil {
			out.args = append(out.args, v)
		}
	}
	return out
}

func (d *draft) from(n *strictyaml.Node, want kind, sc scope) *valueNode {
	if !d.f.Map(n, "a value", "from", "optional") {
		return nil
	}
	p := n.Get("from")
	path, ok := d.f.Text(p, "from")
	if !ok {
		return nil
	}
	out := &valueNode{op: opFrom, pos: p.Pos, path: path}
	if o := n.Get("optional"); o != nil {
		out.optional, _ = d.f.Flag(o, "optional")
	}
	if !d.path(p.Pos, path, want, out.optional, sc) || !d.wholeObject(p.Pos, path, sc) {
		return nil
	}
	return out
}

// wholeObject looks into a value that is placed as it is: the names of its
// members become names of the body's.
func (d *draft) wholeObject(at strictyaml.Pos, path string, sc scope) bool {
	if d.place != placeSent {
		return true
	}
	view, s := d.in, d.valueSchema(path, sc)
	if root, _, _ := strings.Cut(path, "."); root != "input" && sc[root] == nil {
		view = plainView(s)
	}
	for _, name := range view.members(s, refDepth) {
		if ForbiddenMember(name) {
			d.bad(at, "input-member", "give it another name and place its value by itself", "no input and no answer may be part of a member named %q", name)
			return false
		}
	}
	for _, pattern := range view.namePatterns(s, refDepth) {
		if !overAlphabet(pattern, func(r rune) bool { return r == ' ' || visible(r) }) {
			d.bad(at, "input-member", "write the pattern of the names over ASCII, or take a list of objects with a name and a value", "a member of it may be named in letters that look like others")
			return false
		}
		for _, name := range runnableNames {
			if patternMatches(pattern, name) {
				d.bad(at, "input-member", "begin the pattern of the names with a word of yours, or take a list of objects with a name and a value", "a member of it may be named %q, and no input and no answer may be part of that", name)
				return false
			}
		}
	}
	return true
}

// path checks that a value path exists, always has a value or is marked
// optional, and fits its place.
func (d *draft) path(at strictyaml.Pos, path string, want kind, optional bool, sc scope) bool {
	root, rest, dotted := strings.Cut(path, ".")
	if s, ok := sc[root]; ok {
		return d.elementPath(at, s, rest, dotted, want, optional)
	}
	switch root {
	case "input":
		return d.inputPath(at, rest, want, optional)
	case "target":
		if !dotted || rest == "" {
			break
		}
		d.uses = append(d.uses, targetUse{path: rest, want: want, pos: at})
		return true
	case "call":
		if slices.Contains(callPaths, path) {
			return d.wants(at, kindText, want)
		}
		d.bad(at, "value-path", strictyaml.DidYouMean(path, callPaths), "there is no value %q", path)
		return false
	}
	if _, ok := d.gatheredBy(root); ok && dotted && rest != "" {
		return d.capturedPath(at, root, rest, want, optional)
	}
	d.noValue(at, root, path)
	return false
}

// noValue reports a path that begins with nothing that is known here.
func (d *draft) noValue(at strictyaml.Pos, root, path string) {
	if d.unnamed && memberName.MatchString(root) && !slices.Contains(reservedRoots, root) {
		return // it may be the lookup whose name was refused
	}
	hint := "a path begins with input., target., call., a lookup's name or request."
	lookups := d.root.Get("lookups")
	switch {
	case root == stepRequest && (d.step == nil || d.step.kind == StepLookup || d.step.kind == StepRequest):
		hint = "it is known in the poll, in the reconcile and in checks"
	case lookups != nil && lookups.Kind == strictyaml.Mapping && lookups.Get(root) != nil && d.step != nil && d.step.kind == StepLookup:
		hint = "lookups run in the order written; put it before this one"
	case len(d.captured) > 0:
		if did := strictyaml.DidYouMean(root, append(sortedKeys(d.captured), "input", "target", "call")); strings.HasPrefix(did, "did you mean") {
			hint = did
		}
	}
	d.bad(at, "value-path", hint, "there is no value %q", path)
}

var callPaths = []string{"call.id", "call.idempotency_key", "call.now"}

func (d *draft) inputPath(at strictyaml.Pos, rest string, want kind, optional bool) bool {
	if d.in.root == nil {
		return false // the input schema was refused; say that once
	}
	s, required, names := d.in.property(d.in.root, rest)
	return d.found(at, "input."+rest, rest, s, required, names, want, optional)
}

func (d *draft) elementPath(at strictyaml.Pos, s map[string]any, rest string, dotted bool, want kind, optional bool) bool {
	if !dotted {
		return d.wants(at, schemaKind(s), want)
	}
	inner, required, names := d.in.property(s, rest)
	return d.found(at, rest, rest, inner, required, names, want, optional)
}

func (d *draft) found(at strictyaml.Pos, path, rest string, s map[string]any, required bool, names []string, want kind, optional bool) bool {
	switch {
	case s == nil:
		last := rest[strings.LastIndex(rest, ".")+1:]
		d.bad(at, "value-path", strictyaml.DidYouMean(last, names), "there is no value %q", path)
		return false
	case !required && !optional:
		d.bad(at, "value-optional", "write optional: true, or make the input required", "%s may be absent", path)
		return false
	}
	return d.wants(at, schemaKind(s), want)
}

func (d *draft) function(n *strictyaml.Node, fn string, want kind, sc scope) *valueNode {
	arg := n.Members[0].Value
	out := &valueNode{pos: n.Pos}
	if !d.wants(n.Pos, kindText, want) {
		return nil
	}
	one := func(op valueOp, k kind) *valueNode {
		out.op = op
		return d.withArgs(out, d.value(arg, k, sc))
	}
	switch fn {
	case "base64":
		return one(opBase64, kindText)
	case "lower":
		return one(opLower, kindText)
	case "text":
		return one(opText, kindNumber)
	case "json_text":
		return one(opJSONText, kindAny)
	case "concat":
		out.op = opConcat
		var args []*valueNode
		for _, it := range d.f.List(arg, fn) {
			args = append(args, d.value(it, kindText, sc))
		}
		return d.withArgs(out, args...)
	}
	if !d.f.Is(arg, strictyaml.Sequence, fn) {
		return nil
	}
	if len(arg.Items) != 2 {
		d.bad(arg.Pos, "value", "", "%s takes two values", fn)
		return nil
	}
	if fn == "join" {
		out.op = opJoin
		var ok bool
		if out.sep, ok = d.f.Text(arg.Items[1], "the second value of join"); !ok {
			return nil
		}
		return d.withArgs(out, d.value(arg.Items[0], kindList, sc))
	}
	out.op = opAddSeconds
	at, by := d.value(arg.Items[0], kindText, sc), d.value(arg.Items[1], kindNumber, sc)
	if !d.addSecondsArgs(at, by, sc) {
		return nil
	}
	return d.withArgs(out, at, by)
}

// withArgs completes a node, or gives it up where an argument was refused.
func (d *draft) withArgs(out *valueNode, args ...*valueNode) *valueNode {
	if slices.Contains(args, nil) {
		return nil
	}
	out.args = args
	return out
}

func (d *draft) each(n *strictyaml.Node, want kind, sc scope) *valueNode {
	if !d.f.Map(n, "each", "each", "as", "give") || !d.wants(n.Pos, kindList, want) {
		return nil
	}
	as, ok := d.f.Text(d.f.Require(n, "each", "as"), "as")
	give := d.f.Require(n, "each", "give")
	list := d.value(n.Get("each"), kindList, sc)
	if !ok || give == nil || list == nil {
		return nil
	}
	if !memberName.MatchString(as) || d.rootTaken(as) || sc[as] != nil {
		d.bad(n.Get("as").Pos, "value", "choose another name", "%q cannot name the element", as)
		return nil
	}
	inner := scope{}
	maps.Copy(inner, sc)
	inner[as] = d.elements(list, sc)
	out := &valueNode{op: opEach, pos: n.Pos, as: as}
	return d.withArgs(out, list, d.value(give, kindAny, inner))
}

// rootTaken says whether a name begins value paths already.
func (d *draft) rootTaken(name string) bool {
	_, captured := d.gatheredBy(name)
	return captured || slices.Contains(reservedRoots, name)
}

// elements returns the schema of a list's elements, an empty one where nothing
// is known.
func (d *draft) elements(list *valueNode, sc scope) map[string]any {
	if list.op != opFrom {
		return map[string]any{}
	}
	view, s := d.in, d.valueSchema(list.path, sc)
	if root, _, _ := strings.Cut(list.path, "."); root != "input" && sc[root] == nil {
		view = plainView(s)
	}
	if s == nil {
		return map[string]any{}
	}
	if it := view.items(s); it != nil {
		return it
	}
	return map[string]any{}
}

// number returns a JSON number from a node's text.
func number(n *strictyaml.Node) json.Number { return json.Number(n.Text) }
