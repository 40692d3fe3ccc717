package actions

import (
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// stepSpec is one step: an HTTP request and how its answer is read.
type stepSpec struct {
	kind     StepKind
	name     string // request, poll, reconcile or the lookup's own name
	method   string
	path     *pathTemplate
	query    []valueMember
	headers  []valueMember // canonical names
	bodyKind bodyKind
	body     *valueNode
	mime     string
	reads    string // why a step that only reads uses POST
	timeout  time.Duration
	every    time.Duration // poll
	within   time.Duration // poll
	rows     []validate.RowSpec
	rowPos   []strictyaml.Pos
	captures []map[string]shape // of each row, by name
	free     bool               // sends text that may be a sentence of the caller's
	reader   *validate.Reader
	node     *strictyaml.Node
}

type bodyKind uint8

const (
	bodyNone bodyKind = iota
	bodyJSON
	bodyForm
	bodyText
)

var stepKeys = []string{
	"method", "path", "query", "headers", "json", "form", "text", "content_type", "reads", "timeout", "outcomes",
}

// sshKeys are what only a step over SSH has.
var sshKeys = []string{"argv", "env", "stdin", "output", "stderr"}

const (
	defaultTimeout = 30 * time.Second // a whole step, as the daemon's own limit says
	minTimeout     = time.Second
	maxTimeout     = 5 * time.Minute
)

func (d *draft) headerMembers(n *strictyaml.Node) []valueMember {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "headers") {
		return nil
	}
	var out []valueMember
	for _, m := range n.Members {
		name := http.CanonicalHeaderKey(m.Key)
		if !d.headerName(m.KeyPos, m.Key) {
			continue
		}
		if slices.ContainsFunc(out, func(o valueMember) bool { return o.name == name }) {
			d.bad(m.KeyPos, "header", "", "the header %s is written twice", name)
			continue
		}
		v := d.value(m.Value, kindText, nil)
		if v == nil || !d.headerValue(m.Value.Pos, name, v) {
			continue
		}
		out = append(out, valueMember{name, v, m.KeyPos})
	}
	return out
}

// headerName refuses the names that nobody may set. Whether another one is
// allowed depends on the targets, so bind looks again.
func (d *draft) headerName(at strictyaml.Pos, name string) bool {
	if !httpguts.ValidHeaderFieldName(name) {
		d.bad(at, "header", "", "%q is no name of a header", name)
		return false
	}
	if strings.EqualFold(name, "Content-Type") {
		d.bad(at, "header-refused", "write content_type beside the body", "a contract cannot set the header %s", name)
		return false
	}
	if refusedHeader(name) {
		d.bad(at, "header-refused", "", "a contract cannot set the header %s", name)
		return false
	}
	return true
}

// headerValue holds a header to constants, the daemon's own values, and captured
// words that no caller's sentence can have led to.
func (d *draft) headerValue(at strictyaml.Pos, name string, v *valueNode) bool {
	paths := map[string]bool{}
	v.paths(paths)
	for _, path := range sortedKeys(paths) {
		root, rest, _ := strings.Cut(path, ".")
		if g, ok := d.gatheredBy(root); ok {
			if !d.headerCaptured(at, name, g, path, rest) {
				return false
			}
		} else if root != "call" {
			d.bad(at, "header-value", "write a constant, a call. value, or a value that a lookup captured", "the header %s holds %s, which no header may", name, path)
			return false
		}
	}
	if s, ok := v.lit.(string); v.op == opConst && (!ok || !validHeaderText(s)) || !v.visible() {
		d.bad(at, "header-value", "", "the header %s holds a character that headers cannot have", name)
		return false
	}
	return true
}

// visible says whether every text that the author wrote into the value is
// visible ASCII, with spaces at most.
func (v *valueNode) visible() bool {
	s, text := v.lit.(string)
	if text && strings.ContainsFunc(s, func(r rune) bool { return !visible(r) && r != ' ' }) {
		return false
	}
	return !slices.ContainsFunc(v.args, func(a *valueNode) bool { return !a.visible() })
}

// headerCaptured wants an enum or a pattern of visible ASCII.
func (d *draft) headerCaptured(at strictyaml.Pos, name string, g *gathered, path, rest string) bool {
	if g.step.free {
		d.bad(at, "header-value", "send only inputs with an enum or a pattern there", "the header %s holds %s, and %s sends free text of the caller's", name, path, stepWords(g.step))
		return false
	}
	shapes, _, _ := g.look(rest)
	for _, s := range shapes {
		if !headerWord(s) {
			d.bad(at, "header-value", "give it an enum or an anchored pattern of visible ASCII in the row's expect, or matches on the pick", "the header %s holds %s, which may be any text", name, path)
			return false
		}
	}
	return true
}

func headerWord(s shape) bool {
	if vs, closed := closedSet(s); closed {
		return !slices.ContainsFunc(vs, func(v any) bool { t, ok := v.(string); return !ok || !validHeaderText(t) })
	}
	p, _ := s["pattern"].(string)
	return schemaKind(s) == kindText && p != "" && overAlphabet(p, visible)
}

// validHeaderText holds a header's value to visible ASCII and single spaces.
func validHeaderText(s string) bool {
	if s != strings.TrimSpace(s) || !httpguts.ValidHeaderFieldValue(s) {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r > 0x7e {
			return false
		}
	}
	return true
}

var bodyKeys = map[string]bodyKind{"json": bodyJSON, "form": bodyForm, "text": bodyText}

var defaultMIME = map[bodyKind]string{
	bodyJSON: "application/json",
	bodyForm: "application/x-www-form-urlencoded",
	bodyText: "text/plain; charset=utf-8",
}

func (d *draft) body(n *strictyaml.Node, s *stepSpec) {
	for _, m := range n.Members {
		k, ok := bodyKeys[m.Key]
		if !ok {
			continue
		}
		if s.bodyKind != bodyNone {
			d.bad(m.KeyPos, "body", "", "a request has one body: json, form or text")
			continue
		}
		s.bodyKind, s.mime = k, defaultMIME[k]
		if s.method == http.MethodGet || s.method == http.MethodHead {
			d.bad(m.KeyPos, "body", "", "a %s request has no body", s.method)
		}
		s.body = d.bodyValue(m.Value, k)
	}
	if ct := n.Get("content_type"); ct != nil {
		d.contentType(ct, s)
	}
	if s.bodyKind == bodyText && s.body != nil {
		d.textBody(s)
	}
}

// plainMedia are the media in which any text is only text.
var plainMedia = []string{"text/plain", "text/markdown", "application/octet-stream"}

// textBody keeps free text out of a body with a grammar (XML, CSV, …), where it
// could end the value it stands in.
func (d *draft) textBody(s *stepSpec) {
	media, _, _ := mime.ParseMediaType(s.mime)
	if slices.Contains(plainMedia, media) {
		return
	}
	used := map[string]bool{}
	s.body.paths(used)
	for _, path := range sortedKeys(used) {
		if sc := d.valueSchema(path, nil); sc != nil && !plainWord(sc) {
			d.bad(s.body.pos, "text-body", "give it an enum or an anchored pattern over [A-Za-z0-9._-], or send text/plain", "%s may hold more than a word, and a body of %s has a grammar", path, media)
		}
	}
}

// plainWord says whether a value is a number, true or false, one of the
// author's own texts, or a word over [A-Za-z0-9._-].
func plainWord(s map[string]any) bool {
	if _, closed := closedSet(s); closed {
		return true
	}
	pattern, _ := s["pattern"].(string)
	switch schemaKind(s) {
	case kindNumber, kindBool:
		return true
	case kindText:
		return pattern != "" && overAlphabet(pattern, pathRune(false))
	}
	return false
}

func (d *draft) bodyValue(n *strictyaml.Node, k bodyKind) *valueNode {
	switch k {
	case bodyText:
		return d.value(n, kindText, nil)
	case bodyForm:
		if !d.f.Is(n, strictyaml.Mapping, "form") {
			return nil
		}
		d.formNames(n)
		return d.object(n, kindObject, nil)
	}
	// At the top of a JSON body a member may be called text or join; a body that
	// is only a piece of text does not exist.
	if fn := d.functionOf(n); slices.Contains(functionNames, fn) {
		return d.object(n, kindObject, nil)
	}
	return d.value(n, kindAny, nil)
}

func (d *draft) formNames(n *strictyaml.Node) {
	for _, m := range n.Members {
		if overridingMember(m.Key) {
			d.bad(m.KeyPos, "refused-member", "", "the form key %q changes what a request is or for whom", m.Key)
		}
		if m.Key == "" || strings.ContainsAny(plainForm(m.Key), "[]") {
			d.bad(m.KeyPos, "form", "write nested keys as a mapping", "a form key is empty or holds a bracket")
		}
		if m.Value.Kind == strictyaml.Mapping && d.functionOf(m.Value) == "" {
			d.formNames(m.Value)
		}
	}
}

func (d *draft) contentType(n *strictyaml.Node, s *stepSpec) {
	text, ok := d.f.Text(n, "content_type")
	if !ok {
		return
	}
	media, _, err := mime.ParseMediaType(text)
	fits := map[bodyKind]bool{
		bodyJSON: media == "application/json" || strings.HasSuffix(media, "+json"),
		bodyForm: media == "application/x-www-form-urlencoded",
		bodyText: strings.HasPrefix(media, "text/") || media == "application/xml" || media == "application/x-ndjson" || media == "application/octet-stream",
	}
	switch {
	case s.bodyKind == bodyNone:
		d.bad(n.Pos, "body", "", "content_type without a body")
	case err != nil || !validHeaderText(text):
		d.bad(n.Pos, "body", "", "%q is no media type", text)
	case !fits[s.bodyKind]:
		d.bad(n.Pos, "body", "", "the media type %s does not fit this body", media)
	default:
		s.mime = text
	}
}
