package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/scaffold"
)

// Options say what is made of an operation.
type Options struct {
	Operation string // its id, or "METHOD /path"
	Action    string
	Service   string // name of the suggested target, "" for one from the title
	Summary   string // "" for one from the action's name
	Owner     string
	Effect    string // "" for what the method says
}

// Outline makes the outline of a contract. The error is for a description that
// has no such operation, or one that no contract can have.
func (d *Document) Outline(opt Options) (*scaffold.Outline, error) {
	p, err := d.find(opt.Operation)
	if err != nil {
		return nil, err
	}
	o := &scaffold.Outline{
		Action: opt.Action, Summary: opt.Summary, Owner: opt.Owner, Effect: opt.Effect,
		Method: strings.ToUpper(p.method), Constants: map[string]string{},
	}
	title, version := d.title()
	o.Source = strings.TrimSpace(fmt.Sprintf("%s %s of %s %s", o.Method, p.path, title, version))
	if o.Service = opt.Service; o.Service == "" {
		o.Service = targetName(title)
	}
	if o.Effect == "" {
		o.Effect = map[string]string{"GET": "read", "HEAD": "read", "DELETE": "destroy"}[o.Method]
		if o.Effect == "" {
			o.Effect = "change"
		}
	}
	if p.op["deprecated"] == true {
		o.Decide("operation: the description calls it deprecated")
	}
	r := &reader{d: d, o: o, p: p}
	if err := r.parameters(); err != nil {
		return nil, err
	}
	r.body()
	r.answers()
	r.server()
	r.identity()
	r.fewer()
	return o, nil
}

func (d *Document) title() (title, version string) {
	info, _ := d.root["info"].(object)
	title, _ = info["title"].(string)
	version, _ = info["version"].(string)
	return shortLine(title), shortLine(version)
}

var notInTarget = regexp.MustCompile(`[^a-z0-9]+`)

// targetName makes a target's name of a title.
func targetName(title string) string {
	const most = 40
	name := strings.Trim(notInTarget.ReplaceAllString(strings.ToLower(title), "-"), "-0123456789")
	name = strings.Trim(name[:min(len(name), most)], "-")
	if !actions.IsTargetName(name) {
		return "service"
	}
	return name
}

// reader fills an outline from one operation.
type reader struct {
	d *Document
	o *scaffold.Outline
	p place
}

func (r *reader) shaper(input bool) *shaper {
	return &shaper{d: r.d, o: r.o, input: input, left: maxShapes}
}

// parameters reads the operation's parameters over those of its path, and then
// the path itself.
func (r *reader) parameters() error {
	own, _ := r.p.op["parameters"].([]any)
	shared, _ := r.p.item["parameters"].([]any)
	seen := map[string]bool{}
	for _, v := range append(slices.Clone(own), shared...) {
		m, err := r.d.resolve(v)
		if err != nil {
			return err
		}
		name, _ := m["name"].(string)
		in, _ := m["in"].(string)
		if name == "" || seen[in+" "+name] {
			continue
		}
		seen[in+" "+name] = true
		r.parameter(m, name, in)
	}
	return r.path()
}

func (r *reader) parameter(m object, name, in string) {
	switch in {
	case "path", "query":
		r.input(m, name, in)
	case "header":
		r.header(m, name)
	default:
		r.o.Leave(in+" parameter "+clean(name), "no contract sends a cookie")
	}
}

func (r *reader) header(m object, name string) {
	if canonical := strings.ToLower(name); canonical == "idempotency-key" || canonical == "x-idempotency-key" || canonical == "x-request-id" && m["required"] == true {
		if r.o.Effect != "read" {
			r.o.IdempotencyHeader = name
			r.o.Decide("idempotency: the daemon sends its own key as %s; check that the service answers a repeat with the same answer", clean(name))
		}
		return
	}
	why := "no input stands in a header; write a constant under request.headers, or let the operator's target send it"
	if m["required"] == true {
		r.o.Decide("header %s: the service requires it; write a constant, or let the operator's target send it", clean(name))
	}
	r.o.Leave("header "+clean(name), why)
}

// input reads a parameter of the path or the query.
func (r *reader) input(m object, name, in string) {
	at := in + " parameter " + clean(name)
	if why := refusedName(name); why != "" {
		r.without(m, name, in, at, why)
		return
	}
	schema := m["schema"]
	if content, ok := m["content"].(object); ok || schema == nil {
		_ = content
		r.without(m, name, in, at, "it is described by a media type, not by a schema")
		return
	}
	s, ok := r.shaper(true).shape(schema, at, 0)
	if ok && s.Kind == scaffold.Object || ok && s.Kind == scaffold.List && in == "path" {
		r.without(m, name, in, at, "an object or a list has no place there")
		return
	}
	if ok && s.Kind == scaffold.List && (s.Items.Kind == scaffold.Object || s.Items.Kind == scaffold.List) {
		r.without(m, name, in, at, "a query holds plain values and lists of them")
		return
	}
	if ok && in == "path" {
		if s, ok = r.inPath(s, at); !ok {
			r.without(m, name, in, at, "free text does not stand in a path")
			return
		}
	}
	if !ok {
		r.without(m, name, in, at, "")
		return
	}
	if e, has := firstExample(m); has {
		s.Example = e
	}
	x := scaffold.Input{Name: name, Member: name, Place: scaffold.InQuery, Required: m["required"] == true, About: r.aboutOf(m), Shape: s}
	if in == "path" {
		x.Place, x.Required = scaffold.InPath, true
	}
	r.o.Inputs = append(r.o.Inputs, x)
}

func (r *reader) aboutOf(m object) string {
	text, _ := m["description"].(string)
	return shortLine(text)
}

// uuidPattern lets a UUID stand in a path, where a pattern is needed.
const uuidPattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"

// idChars is the longest id that a bounded text in a path is taken for.
const idChars = 128

// inPath narrows a shape to what may stand in a path. Text that nobody bounds is
// taken for an id; what is clearly more than that is refused.
func (r *reader) inPath(s scaffold.Shape, at string) (scaffold.Shape, bool) {
	switch s.Kind {
	case scaffold.UUID:
		return scaffold.Shape{Kind: scaffold.Word, Pattern: uuidPattern, Max: 36, Example: s.Example}, true
	case scaffold.Day:
		return scaffold.Shape{Kind: scaffold.Word, Pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", Max: 10, Example: s.Example}, true
	case scaffold.Text:
		if s.Max > idChars && s.Max != scaffold.DefaultText {
			return s, false
		}
		most := min(s.Max, scaffold.DefaultWord)
		r.o.Decide("%s: the description lets it be any text; up to %d letters, digits and . _ - are assumed", at, most)
		return scaffold.Shape{Kind: scaffold.Word, Pattern: scaffold.WordPattern(most), Max: most, Example: s.Example}, true
	}
	return s, s.FitsPath()
}

// without leaves a parameter out. A hole in the path is filled by a constant of
// the operator's target.
func (r *reader) without(m object, name, in, at, why string) {
	if why != "" {
		r.o.Leave(at, why)
	}
	switch {
	case in == "path":
		r.constant(name)
	case m["required"] == true:
		r.o.Decide("%s: the service requires it; write a constant, or {from: target.NAME} and let the operator fill it", at)
	}
}

var notInConstant = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// constant gives a placeholder to the operator.
func (r *reader) constant(name string) {
	own := "p_" + strings.Trim(notInConstant.ReplaceAllString(name, "_"), "_")
	if actions.IsInputName(name) && !strings.Contains(name, "-") {
		own = name
	}
	own = own[:min(len(own), 60)]
	r.o.Constants[own] = "example"
	r.o.Decide("target.%s: the operator fills this part of the path under with, in targets.yaml", own)
	r.p.path = strings.ReplaceAll(r.p.path, "{"+name+"}", "{target."+own+"}")
}

var hole = regexp.MustCompile(`\{([^{}]*)\}`)

// literal is what a path may hold as it is.
var literal = regexp.MustCompile(`^[A-Za-z0-9._~!$&'()*+,=:@/-]*$`)

// path writes the template with the names of contracts.
func (r *reader) path() error {
	for _, m := range hole.FindAllStringSubmatch(r.p.path, -1) {
		name := m[1]
		known := slices.ContainsFunc(r.o.Inputs, func(in scaffold.Input) bool { return in.Place == scaffold.InPath && in.Member == name })
		switch {
		case strings.HasPrefix(name, "target."):
		case known:
			r.p.path = strings.ReplaceAll(r.p.path, "{"+name+"}", "{input."+name+"}")
		default:
			r.o.Leave("path parameter "+clean(name), "the description does not describe it")
			r.constant(name)
		}
	}
	for _, in := range r.o.Inputs {
		if in.Place == scaffold.InPath && !strings.Contains(r.p.path, "{input."+in.Name+"}") {
			return fmt.Errorf("the path %q has no place for its parameter %q", short(r.p.path), short(in.Name))
		}
	}
	rest := hole.ReplaceAllString(r.p.path, "x")
	if !strings.HasPrefix(rest, "/") || !literal.MatchString(rest) || strings.Contains(rest, "//") || strings.Contains(rest, "/./") || strings.Contains(rest, "/../") {
		return fmt.Errorf("the path %q is none that a contract can have", short(r.p.path))
	}
	r.o.Path = r.p.path
	return nil
}

// fewer keeps the draft to what a person can review: required inputs first.
func (r *reader) fewer() {
	slices.SortStableFunc(r.o.Inputs, func(a, b scaffold.Input) int {
		return map[bool]int{true: 0, false: 1}[a.Required] - map[bool]int{true: 0, false: 1}[b.Required]
	})
	if len(r.o.Inputs) <= scaffold.MaxInputs {
		return
	}
	for _, in := range r.o.Inputs[scaffold.MaxInputs:] {
		r.o.Leave("input "+in.Name, fmt.Sprintf("the draft has %d inputs; add it where the task needs it", scaffold.MaxInputs))
	}
	r.o.Inputs = r.o.Inputs[:scaffold.MaxInputs]
}
