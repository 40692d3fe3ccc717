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

// stepSpec is the one step of this release: an HTTP request and how its answer
// is read.
type stepSpec struct {
	method   string
	path     *pathTemplate
	query    []valueMember
	headers  []valueMember // canonical names
	bodyKind bodyKind
	body     *valueNode
	mime     string
	reads    string // why a step that only reads uses POST
	timeout  time.Duration
	rows     []validate.RowSpec
	rowPos   []strictyaml.Pos
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

func (d *draft) step(n *strictyaml.Node) {
	if n == nil {
		return
	}
	if argv := n.Get("argv"); argv != nil {
		d.later(argv.Pos, "a step over SSH (argv)")
		return
	}
	if !d.f.Map(n, "request", append(slices.Clone(stepKeys), sshKeys...)...) {
		return
	}
	for _, m := range n.Members {
		if slices.Contains(sshKeys, m.Key) {
			d.later(m.KeyPos, "a step over SSH ("+m.Key+")")
		}
	}
	d.requestNode = n
	s := &d.c.request
	d.method(n, s)
	if p := d.f.Require(n, "request", "path"); p != nil {
		s.path = d.parsePath(p)
	}
	s.query = d.queryMembers(n.Get("query"))
	s.headers = d.headerMembers(n.Get("headers"))
	d.body(n, s)
	s.timeout = defaultTimeout
	if t := n.Get("timeout"); t != nil {
		if v, ok := d.f.Duration(t, "timeout", minTimeout, maxTimeout); ok {
			s.timeout = v
		}
	}
	d.outcomes(d.f.Require(n, "request", "outcomes"))
}

// method ties the method to the effect.
func (d *draft) method(n *strictyaml.Node, s *stepSpec) {
	m := d.f.Require(n, "request", "method")
	word, ok := d.f.Word(m, "method", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	if r := n.Get("reads"); r != nil {
		s.reads = d.sentence(r, "reads", maxBecause)
	}
	if !ok || d.c.effect == 0 {
		return
	}
	s.method = word
	readsOnly := word == http.MethodGet || word == http.MethodHead
	switch {
	case d.c.effect == Read && !readsOnly && (word != http.MethodPost || s.reads == ""):
		d.bad(m.Pos, "effect-method", "write effect: change, or for a POST that only reads give reads: \"why\"", "a contract that reads cannot use %s", word)
	case d.c.effect != Read && readsOnly:
		d.bad(m.Pos, "effect-method", "write effect: read, or use the method that changes", "a contract that changes something cannot use %s", word)
	case word == http.MethodDelete && d.c.effect != Destroy:
		d.bad(m.Pos, "effect-method", "write effect: destroy", "a DELETE request destroys")
	}
	if s.reads != "" && (d.c.effect != Read || readsOnly) {
		d.bad(n.Get("reads").Pos, "effect-method", "", "reads stands only beside a POST of a contract that reads")
	}
}

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

func (d *draft) headerValue(at strictyaml.Pos, name string, v *valueNode) bool {
	roots := map[string]bool{}
	v.roots(roots)
	delete(roots, "call")
	if len(roots) > 0 {
		d.bad(at, "header-value", "write a constant or a call. value", "the header %s holds a value that is neither", name)
		return false
	}
	if s, ok := v.lit.(string); v.op == opConst && (!ok || !validHeaderText(s)) {
		d.bad(at, "header-value", "", "the header %s holds a character that headers cannot have", name)
		return false
	}
	return true
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
	s.body.inputs(used)
	for _, name := range sortedKeys(used) {
		if sc, _, _ := d.in.property(d.in.root, name); sc != nil && !plainWord(sc) {
			d.bad(s.body.pos, "text-body", "give it an enum or an anchored pattern over [A-Za-z0-9._-], or send text/plain", "input.%s may hold more than a word, and a body of %s has a grammar", name, media)
		}
	}
}

// plainWord says whether a value is a number, true or false, one of the
// author's own texts, or a word over [A-Za-z0-9._-].
func plainWord(s map[string]any) bool {
	if s["enum"] != nil || s["const"] != nil {
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
	if fn := functionOf(n); slices.Contains(functionNames, fn) {
		return d.object(n, kindObject, nil)
	}
	return d.value(n, kindAny, nil)
}

func (d *draft) formNames(n *strictyaml.Node) {
	for _, m := range n.Members {
		if overridingMember(m.Key) {
			d.bad(m.KeyPos, "refused-member", "", "the form key %q changes what a request is or for whom", m.Key)
		}
		if m.Key == "" || strings.ContainsAny(m.Key, "[]") {
			d.bad(m.KeyPos, "form", "write nested keys as a mapping", "a form key is empty or holds a bracket")
		}
		if m.Value.Kind == strictyaml.Mapping && functionOf(m.Value) == "" {
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
