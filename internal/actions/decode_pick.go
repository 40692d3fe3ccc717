package actions

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

var (
	predicateOps = []string{"equals", "in", "exists", "is_null", "not", "all_of", "any_of", "each", "some", "none", "count", "compare"}
	comparisons  = []string{"<", "<=", "==", "!=", ">=", ">"}
	timeForms    = []string{"rfc3339", "rfc3339_loose", "unix_seconds", "unix_millis", "unix_nanos", "http_date"}
)

// predicate reads one predicate. input says whether a side may be the caller's
// own value; it may, since a predicate only chooses.
func (d *draft) predicate(n *strictyaml.Node, input bool) (validate.PredicateSpec, bool) {
	p := validate.PredicateSpec{}
	if !d.f.Is(n, strictyaml.Mapping, "a predicate") {
		return p, false
	}
	if len(n.Members) != 1 {
		d.bad(n.Pos, "predicate", "join several with all_of or any_of", "a predicate has exactly one key")
		return p, false
	}
	m := n.Members[0]
	if !slices.Contains(predicateOps, m.Key) {
		d.bad(m.KeyPos, "unknown-key", strictyaml.DidYouMean(m.Key, predicateOps), "there is no predicate %q", m.Key)
		return p, false
	}
	p.Op = m.Key
	switch m.Key {
	case "exists", "is_null":
		var ok bool
		p.Ptr, ok = d.pointer(m.Value)
		return p, ok
	case "not":
		sub, ok := d.predicate(m.Value, input)
		p.Subs = []validate.PredicateSpec{sub}
		return p, ok
	case "all_of", "any_of":
		return d.predicates(m.Value, p, input)
	case "compare":
		return d.comparison(m.Value, p)
	case "count":
		return d.counting(m.Value, p)
	}
	return d.pointed(m.Value, p, input)
}

func (d *draft) predicates(n *strictyaml.Node, p validate.PredicateSpec, input bool) (validate.PredicateSpec, bool) {
	items := d.f.List(n, p.Op)
	good := n.Kind == strictyaml.Sequence
	if good && len(items) == 0 {
		d.bad(n.Pos, "predicate", "", "%s is empty", p.Op)
		return p, false
	}
	for _, it := range items {
		sub, ok := d.predicate(it, input)
		p.Subs, good = append(p.Subs, sub), good && ok
	}
	return p, good
}

// pointed reads [pointer, X] of equals, in, each, some and none.
func (d *draft) pointed(n *strictyaml.Node, p validate.PredicateSpec, input bool) (validate.PredicateSpec, bool) {
	items, ok := d.tuple(n, p.Op, 2)
	if !ok {
		return p, false
	}
	p.Ptr, ok = d.pointer(items[0])
	switch p.Op {
	case "equals":
		arg, good := d.operand(items[1], false)
		p.Arg = arg
		return p, ok && good
	case "in":
		set := d.f.List(items[1], "the set of in")
		if items[1].Kind == strictyaml.Sequence && len(set) == 0 {
			d.bad(items[1].Pos, "predicate", "", "the set of in is empty")
		}
		plain := true
		for _, it := range set {
			plain = d.literal(it, "only constants stand in a set; join equals: [POINTER, {from: PATH}] or [POINTER, {const: …}] with any_of") && plain
			p.Set = append(p.Set, it.Value())
		}
		return p, ok && plain && len(p.Set) > 0
	}
	sub, good := d.predicate(items[1], input)
	p.Subs = []validate.PredicateSpec{sub}
	return p, ok && good
}

func (d *draft) tuple(n *strictyaml.Node, what string, size int) ([]*strictyaml.Node, bool) {
	if !d.f.Is(n, strictyaml.Sequence, what) {
		return nil, false
	}
	if len(n.Items) != size {
		d.bad(n.Pos, "predicate", "", "%s takes %d values", what, size)
		return nil, false
	}
	return n.Items, true
}

func (d *draft) counting(n *strictyaml.Node, p validate.PredicateSpec) (validate.PredicateSpec, bool) {
	items, ok := d.tuple(n, "count", 3)
	if !ok {
		return p, false
	}
	var good, whole bool
	p.Ptr, ok = d.pointer(items[0])
	p.Cmp, good = d.f.Word(items[1], "the comparison", comparisons...)
	_, whole = d.f.Whole(items[2], "the number of count", 0, 1<<31)
	p.N = number(items[2])
	return p, ok && good && whole
}

func (d *draft) comparison(n *strictyaml.Node, p validate.PredicateSpec) (validate.PredicateSpec, bool) {
	items, ok := d.tuple(n, "compare", 3)
	if !ok {
		return p, false
	}
	var a, b, c bool
	p.Left, a = d.operand(items[0], true)
	p.Cmp, b = d.f.Word(items[1], "the comparison", comparisons...)
	p.Right, c = d.operand(items[2], true)
	return p, a && b && c
}

// operand reads one side. In compare a text is a pointer; in equals it is a
// constant.
func (d *draft) operand(n *strictyaml.Node, compare bool) (validate.Operand, bool) {
	if n.Get("from") != nil {
		if !d.f.Map(n, "a value", "from") {
			return validate.Operand{}, false
		}
		path, ok := d.f.Text(n.Get("from"), "from")
		want := kindAny
		if compare {
			want = kindNumber
		}
		ok = ok && d.scopePath(n.Get("from").Pos, path, want)
		return validate.Operand{Kind: validate.OperandFrom, From: path}, ok
	}
	if n.Get("const") != nil && len(n.Members) == 1 {
		return validate.Operand{Kind: validate.OperandConst, Const: n.Get("const").Value()}, true
	}
	if !compare {
		ok := d.literal(n, "only a constant or {from: PATH}; write {const: …} for an object")
		return validate.Operand{Kind: validate.OperandConst, Const: n.Value()}, ok
	}
	if n.Kind == strictyaml.Mapping {
		return d.atOperand(n)
	}
	if n.Kind == strictyaml.Number {
		return validate.Operand{Kind: validate.OperandConst, Const: number(n)}, true
	}
	ptr, ok := d.pointer(n)
	return validate.Operand{Kind: validate.OperandAt, At: ptr}, ok
}

// literal refuses a constant that looks like a function, at any depth: nothing is
// computed beside an answer, so that the object itself would be compared and
// never be equal.
func (d *draft) literal(n *strictyaml.Node, hint string) bool {
	if fn := d.functionOf(n); fn != "" {
		d.bad(n.Pos, "predicate", hint, "a predicate computes nothing, and this looks like the function %s", fn)
		return false
	}
	for _, m := range n.Members {
		if !d.literal(m.Value, hint) {
			return false
		}
	}
	for _, it := range n.Items {
		if !d.literal(it, hint) {
			return false
		}
	}
	return true
}

func (d *draft) atOperand(n *strictyaml.Node) (validate.Operand, bool) {
	o := validate.Operand{Kind: validate.OperandAt}
	if !d.f.Map(n, "a side of compare", "at", "absent") {
		return o, false
	}
	ok := false
	if at := d.f.Require(n, "a side of compare", "at"); at != nil {
		o.At, ok = d.pointer(at)
	}
	if a := n.Get("absent"); a != nil {
		good := d.f.Is(a, strictyaml.Number, "absent")
		o.Absent, o.HasAbsent, ok = number(a), good, ok && good
	}
	return o, ok
}

// scopePath checks a path that is read beside an answer: absent is not an error
// of the contract there, only an unknown name is.
func (d *draft) scopePath(at strictyaml.Pos, path string, want kind) bool {
	return d.path(at, path, want, true, nil)
}

func (d *draft) pointer(n *strictyaml.Node) (string, bool) {
	s, ok := d.f.Text(n, "a pointer")
	if !ok {
		return "", false
	}
	if _, err := validate.ParsePointer(s); err != nil {
		d.bad(n.Pos, "pointer", "a pointer is empty or begins with / ; write ~0 for ~ and ~1 for /", "%q is no JSON pointer", s)
		return "", false
	}
	return s, true
}

// successPicks reads success and holds it against the result schema.
func (d *draft) successPicks(n *strictyaml.Node) map[string]validate.PickSpec {
	if !d.f.Is(n, strictyaml.Mapping, "success") {
		return nil
	}
	out := map[string]validate.PickSpec{}
	props, _ := d.c.resultDoc["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(props))
	for _, m := range n.Members {
		if _, ok := props[m.Key]; !ok && d.c.resultDoc != nil {
			d.bad(m.KeyPos, "pick-unknown", strictyaml.DidYouMean(m.Key, known), "the result has no member %q", m.Key)
		}
		if p, ok := d.pick(m.Value, true); ok {
			out[m.Key] = p
		}
	}
	required, _ := d.c.resultDoc["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		p, ok := out[name]
		if !ok && n.Get(name) == nil && !slices.Contains(n.Broken(), name) {
			d.bad(n.Pos, "pick-missing", "", "success does not pick %q, which the result requires", name)
		}
		if ok && (p.Optional || p.Null == "omit") {
			d.bad(n.Get(name).Pos, "pick-missing", "", "the result requires %q, so its pick cannot leave it out", name)
		}
	}
	return out
}

func (d *draft) displayPicks(n *strictyaml.Node, body shape) map[string]validate.PickSpec {
	if !d.f.Is(n, strictyaml.Mapping, "display") {
		return nil
	}
	out := map[string]validate.PickSpec{}
	for _, m := range n.Members {
		if _, ok := d.c.display[m.Key]; !ok {
			d.bad(m.KeyPos, "pick-unknown", strictyaml.DidYouMean(m.Key, d.c.DisplayNames()), "display declares no text %q", m.Key)
		}
		p, ok := d.pick(m.Value, true)
		if !ok {
			continue
		}
		out[m.Key] = p
		if s := d.pickShape(p, body, m.Value.Pos); s != nil && !schemaKind(s).fits(kindText) {
			d.bad(m.Value.Pos, "pick-never", "put text: true on a number", "display shows text, and this is %s", schemaKind(s))
		}
	}
	return out
}

// pickStarts are the keys a pick begins with, pickKeys all of them.
var (
	pickStarts = []string{"find", "at", "header", "from", "const", "each"}
	pickKeys   = append(slices.Clone(pickStarts), "base64", "last_segment", "trim", "strip_prefix", "lower",
		"map", "other", "integer", "time", "text", "prefix", "matches", "optional", "null")
)

func (d *draft) pick(n *strictyaml.Node, evidence bool) (validate.PickSpec, bool) {
	if n.Kind == strictyaml.String {
		ptr, ok := d.pointer(n)
		return validate.PickSpec{Kind: validate.PickPointer, At: ptr}, ok
	}
	p := validate.PickSpec{}
	before := d.f.Count()
	if !d.f.Map(n, "a pick", pickKeys...) {
		return p, false
	}
	d.pickStart(n, &p, evidence)
	d.pickSteps(n, &p)
	return p, d.f.Count() == before
}

// pickStart reads where a pick begins.
func (d *draft) pickStart(n *strictyaml.Node, p *validate.PickSpec, evidence bool) {
	starts := slices.DeleteFunc(n.Keys(), func(k string) bool { return !slices.Contains(pickStarts, k) })
	find := slices.Contains(starts, "find") && slices.Contains(starts, "at") && len(starts) == 2
	if len(starts) != 1 && !find {
		d.bad(n.Pos, "pick", "", "a pick begins with one of %s", strings.Join(pickStarts, ", "))
		return
	}
	if at := n.Get("at"); at != nil {
		p.Kind = validate.PickPointer
		p.At, _ = d.pointer(at)
	}
	switch {
	case n.Get("find") != nil:
		d.pickFind(n.Get("find"), p)
	case n.Get("header") != nil:
		h := n.Get("header")
		p.Kind = validate.PickHeader
		p.Header, _ = d.f.Text(h, "header")
		if !httpguts.ValidHeaderFieldName(p.Header) {
			d.bad(h.Pos, "pick", "", "%q is no name of a header", p.Header)
		}
	case n.Get("from") != nil:
		f := n.Get("from")
		p.Kind = validate.PickFrom
		p.From, _ = d.f.Text(f, "from")
		if evidence && strings.HasPrefix(p.From, "input.") {
			d.bad(f.Pos, "pick-input", "pick what the remote system answered", "the agent's own words are no evidence")
		} else {
			d.scopePath(f.Pos, p.From, kindAny)
		}
	case n.Get("const") != nil:
		p.Kind, p.Const = validate.PickConst, n.Get("const").Value()
	case n.Get("each") != nil:
		d.pickEach(n.Get("each"), p, evidence)
	}
}

func (d *draft) pickFind(n *strictyaml.Node, p *validate.PickSpec) {
	p.Kind = validate.PickFind
	if !d.f.Map(n, "find", "in", "where") {
		return
	}
	f := &validate.FindSpec{}
	if in := d.f.Require(n, "find", "in"); in != nil {
		f.In, _ = d.pointer(in)
	}
	if w := d.f.Require(n, "find", "where"); w != nil {
		f.Where, _ = d.predicate(w, true)
	}
	p.Find = f
}

const maxEach = 10000 // elements of a list that leaves

func (d *draft) pickEach(n *strictyaml.Node, p *validate.PickSpec, evidence bool) {
	p.Kind = validate.PickEach
	if !d.f.Map(n, "each", "in", "max", "pick") {
		return
	}
	e := &validate.EachSpec{Pick: map[string]validate.PickSpec{}}
	if in := d.f.Require(n, "each", "in"); in != nil {
		e.In, _ = d.pointer(in)
	}
	if v, ok := d.f.Whole(d.f.Require(n, "each", "max"), "max", 1, maxEach); ok {
		e.Max = int(v)
	}
	if pk := d.f.Require(n, "each", "pick"); pk != nil && d.f.Is(pk, strictyaml.Mapping, "pick") {
		for _, m := range pk.Members {
			if sub, ok := d.pick(m.Value, evidence); ok {
				e.Pick[m.Key] = sub
			}
		}
	}
	p.Each = e
}

// pickSteps reads the conversions.
func (d *draft) pickSteps(n *strictyaml.Node, p *validate.PickSpec) {
	flags := map[string]*bool{
		"base64": &p.Base64, "last_segment": &p.LastSegment, "trim": &p.Trim, "lower": &p.Lower,
		"integer": &p.Integer, "text": &p.Text, "optional": &p.Optional,
	}
	texts := map[string]*string{"strip_prefix": &p.StripPrefix, "prefix": &p.Prefix, "matches": &p.Matches}
	for _, m := range n.Members {
		if flag, ok := flags[m.Key]; ok {
			*flag, _ = d.f.Flag(m.Value, m.Key)
		}
		if text, ok := texts[m.Key]; ok {
			*text, _ = d.f.Text(m.Value, m.Key)
		}
	}
	if t := n.Get("time"); t != nil {
		p.Time, _ = d.f.Word(t, "time", timeForms...)
	}
	if z := n.Get("null"); z != nil {
		p.Null, _ = d.nullWord(z)
	}
	if n.Get("matches") != nil {
		for _, complaint := range validate.LintPattern(p.Matches) {
			d.bad(n.Get("matches").Pos, "pattern", "", "%s", complaint)
		}
	}
	d.pickMap(n, p)
}

// nullWord reads null: keep | omit | refuse.
func (d *draft) nullWord(n *strictyaml.Node) (string, bool) {
	return d.f.Word(n, "null", "keep", "omit", "refuse")
}

func (d *draft) pickMap(n *strictyaml.Node, p *validate.PickSpec) {
	if m := n.Get("map"); m != nil && d.f.Is(m, strictyaml.Mapping, "map") {
		p.HasMap, p.Map = true, map[string]any{}
		if len(m.Members) == 0 {
			d.bad(m.Pos, "pick", "", "map is empty")
		}
		for _, e := range m.Members {
			p.Map[e.Key] = e.Value.Value()
		}
	}
	o := n.Get("other")
	if o == nil {
		return
	}
	p.HasOther, p.Other = true, o.Value()
	if !p.HasMap {
		d.bad(o.Pos, "pick", "", "other stands beside map")
	}
	for _, v := range p.Map {
		if validate.Equal(v, p.Other) {
			d.bad(o.Pos, "pick", "an unknown word must stay apart from the known ones", "other equals a value of the map")
			return
		}
	}
}
