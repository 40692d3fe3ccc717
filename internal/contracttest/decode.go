package contracttest

import (
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/contracttest/upstream"
)

// decoder turns one file's nodes into a fixture, reporting every mistake.
type decoder struct {
	f      *strictyaml.File
	dir    string
	bodies map[string]bool // files of body_file, by their path
	steps  []string        // the steps that the contract has
	codes  []string        // the codes of the API and of the contract; empty where none is known
}

// sshKeys belong to steps that this release does not play.
var sshKeys = map[string]bool{
	"exit": true, "stdout": true, "stderr": true, "stdout_base64": true, "stdout_repeat": true,
	"argv": true, "env": true, "stdin": true,
}

// keyForm is what an idempotency key may be: visible ASCII, as a header's value.
var keyForm = regexp.MustCompile(`^[!-~]{1,255}$`)

func (d decoder) fixture(fx *fixture) {
	root := d.f.Root()
	if !d.f.Map(root, "a fixture", "name", "input", "now", "idempotency_key", "call_id", "answers", "want") {
		return
	}
	fx.name, _ = d.f.Text(d.f.Require(root, "a fixture", "name"), "name")
	if in := d.f.Require(root, "a fixture", "input"); in != nil {
		fx.input = in.Value()
	}
	fx.now = d.instant(root.Get("now"))
	fx.idempotencyKey = d.key(root.Get("idempotency_key"), "idempotency_key")
	fx.callID = d.key(root.Get("call_id"), "call_id")
	// An input that is refused needs no answer.
	items := d.f.List(root.Get("answers"), "answers")
	if len(items) > maxAnswers {
		d.f.Report(items[maxAnswers].Pos, "range", "", "a fixture has at most %d answers", maxAnswers)
		items = items[:maxAnswers]
	}
	for i, n := range items {
		fx.answers = append(fx.answers, d.answer(n))
		if i > 0 && fx.answers[i-1].repeat && fx.answers[i-1].step == fx.answers[i].step {
			d.f.Report(items[i-1].Pos, "unreachable", "put it behind the others of its step", "nothing of the same step comes after an answer that is repeated")
		}
	}
	if w := d.f.Require(root, "a fixture", "want"); w != nil {
		fx.line = lineOfKey(root, "want")
		d.want(w, &fx.want)
	}
}

func lineOfKey(n *strictyaml.Node, key string) int {
	for _, m := range n.Members {
		if m.Key == key {
			return m.KeyPos.Line
		}
	}
	return n.Pos.Line
}

// instant reads an RFC 3339 time; without one the time of the run counts.
func (d decoder) instant(n *strictyaml.Node) time.Time {
	if n == nil {
		return time.Now().UTC()
	}
	s, ok := d.f.Text(n, "now")
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		d.f.Report(n.Pos, "time", "write 2026-01-05T10:00:00Z", "now is no RFC 3339 time")
	}
	return t.UTC()
}

func (d decoder) key(n *strictyaml.Node, what string) string {
	if n == nil {
		return ""
	}
	s, ok := d.f.Text(n, what)
	if ok && !keyForm.MatchString(s) {
		d.f.Report(n.Pos, "text", "", "%s must be 1 to 255 visible ASCII characters", what)
	}
	return s
}

func (d decoder) answer(n *strictyaml.Node) answer {
	a := answer{status: 200}
	if d.ssh(n) || !d.f.Map(n, "an answer", "step", "status", "headers", "body", "body_file", "jws", "close", "delay", "repeat") {
		return a
	}
	a.step = d.step(n, "an answer")
	if s := n.Get("status"); s != nil {
		v, _ := d.f.Whole(s, "status", 200, 599)
		a.status = int(v)
	}
	a.headers = d.headers(n.Get("headers"))
	d.body(n, &a)
	a.tokens = d.tokens(n.Get("jws"))
	d.tokensUsed(n, a)
	if c := n.Get("close"); c != nil {
		a.close, _ = d.f.Word(c, "close", "before_answer", "after_headers")
	}
	if c := n.Get("delay"); c != nil {
		a.delay, _ = d.f.Duration(c, "delay", 0, time.Hour)
	}
	if c := n.Get("repeat"); c != nil {
		a.repeat, _ = d.f.Flag(c, "repeat")
	}
	if a.close == "" && n.Get("status") == nil && a.delay == 0 {
		d.f.Report(n.Pos, "missing-key", "write status or close", "an answer needs a status, or close")
	}
	return a
}

// ssh reports the keys of SSH steps once, with the reason.
func (d decoder) ssh(n *strictyaml.Node) bool {
	found := false
	if n != nil {
		for _, m := range n.Members {
			if sshKeys[m.Key] {
				d.f.Report(m.KeyPos, "ssh", "", "%q belongs to a step over SSH, which this release does not play", m.Key)
				found = true
			}
		}
	}
	return found
}

// step reads which step an answer or a request belongs to.
func (d decoder) step(n *strictyaml.Node, what string) string {
	s := d.f.Require(n, what, "step")
	if s == nil {
		return ""
	}
	name, _ := d.f.Word(s, "step", d.steps...)
	return name
}

func (d decoder) body(n *strictyaml.Node, a *answer) {
	inline, file := n.Get("body"), n.Get("body_file")
	switch {
	case inline != nil && file != nil:
		d.f.Report(file.Pos, "exclusive", "take one away", "body stands beside body_file")
	case inline != nil:
		s, _ := d.f.Text(inline, "body")
		a.body, a.hasBody = []byte(s), true
	case file != nil:
		name, ok := d.f.Text(file, "body_file")
		if !ok {
			return
		}
		if !filepath.IsLocal(name) {
			d.f.Report(file.Pos, "file", "", "body_file must lie beside the fixture or below")
			return
		}
		path := filepath.Join(d.dir, name)
		d.bodies[path] = true
		b, err := os.ReadFile(path)
		if err != nil || len(b) > maxFixture {
			d.f.Report(file.Pos, "file", "", "body_file cannot be read or is larger than %d bytes", maxFixture)
			return
		}
		a.body, a.hasBody = b, true
	}
}

// headers reads a mapping from names to values; a list is several lines.
func (d decoder) headers(n *strictyaml.Node) []upstream.Header {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "headers") {
		return nil
	}
	var out []upstream.Header
	for _, m := range n.Members {
		for _, v := range d.values(m.Value, "the header "+m.Key) {
			if strings.ContainsAny(m.Key+v, "\r\n") {
				d.f.Report(m.KeyPos, "text", "", "a header may not have a line break")
				continue
			}
			out = append(out, upstream.Header{Name: textproto.CanonicalMIMEHeaderKey(m.Key), Value: v})
		}
	}
	return out
}

// values reads one text or number, or a list of them.
func (d decoder) values(n *strictyaml.Node, what string) []string {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case strictyaml.String, strictyaml.Number:
		return []string{n.Text}
	case strictyaml.Sequence:
		var out []string
		for _, it := range n.Items {
			out = append(out, d.values(it, what)...)
		}
		return out
	}
	d.f.Report(n.Pos, "type", "", "%s must be text, a number or a list of them", what)
	return nil
}

func (d decoder) want(n *strictyaml.Node, w *want) {
	if !d.f.Map(n, "want", "ok", "data", "display", "code", "layer", "sent") {
		return
	}
	w.ok, _ = d.f.Flag(d.f.Require(n, "want", "ok"), "want.ok")
	data, display, code, layer := n.Get("data"), n.Get("display"), n.Get("code"), n.Get("layer")
	w.data, w.hasData = data.Value(), data != nil
	w.display, w.hasShown = display.Value(), display != nil
	if code != nil {
		w.code, _ = d.f.Text(code, "want.code")
	}
	known := d.code(code, w.code)
	if layer != nil {
		w.layer, _ = d.f.Word(layer, "want.layer", layers...)
	}
	switch {
	case w.ok && (code != nil || layer != nil):
		d.f.Report(n.Pos, "exclusive", "", "a success has no code and no layer")
	case w.ok && data == nil:
		d.f.Report(n.Pos, "missing-key", "write data: {} where there is nothing to tell", "a success needs data")
	case !w.ok && (data != nil || display != nil):
		d.f.Report(n.Pos, "exclusive", "", "a failure has no data and no display")
	case !w.ok && code == nil:
		d.f.Report(n.Pos, "missing-key", "", "a failure needs a code")
	case layer != nil && w.code != "INVALID_RESPONSE" && known:
		d.f.Report(layer.Pos, "exclusive", "", "only INVALID_RESPONSE has a layer")
	}
	if s := n.Get("sent"); s != nil {
		w.hasSent = true
		for _, it := range d.f.List(s, "want.sent") {
			w.sent = append(w.sent, d.sent(it))
		}
	}
}

// code refuses a code that no call can end with: the fixture would fail for ever,
// and a slip is told beside the others of the file.
func (d decoder) code(n *strictyaml.Node, code string) bool {
	if n == nil || n.Kind != strictyaml.String || len(d.codes) == 0 || slices.Contains(d.codes, code) {
		return true
	}
	hint := strictyaml.DidYouMean(code, d.codes)
	if hint == "" {
		hint = "write a code of the API, such as NOT_FOUND, or one that the contract declares under failures"
	}
	d.f.Report(n.Pos, "word", hint, "want.code cannot be %q: it is no code of the API, and the contract declares none of that name", code)
	return false
}

func (d decoder) sent(n *strictyaml.Node) sent {
	var s sent
	if d.ssh(n) || !d.f.Map(n, "an entry of sent", "step", "method", "path", "query", "headers", "json", "form", "text", "credential") {
		return s
	}
	s.step = d.step(n, "an entry of sent")
	s.method, _ = d.f.Text(d.f.Require(n, "an entry of sent", "method"), "method")
	s.path, _ = d.f.Text(d.f.Require(n, "an entry of sent", "path"), "path")
	s.query = d.pairs(n.Get("query"), "query")
	s.headers = d.headers(n.Get("headers"))
	if c := n.Get("credential"); c != nil {
		s.credential = d.credential(c)
	}
	for _, form := range []string{"json", "form", "text"} {
		v := n.Get(form)
		if v == nil {
			continue
		}
		if s.body.form != "" {
			d.f.Report(v.Pos, "exclusive", "", "a request has one body, not %s and %s", s.body.form, form)
		}
		s.body.form = form
		switch form {
		case "json":
			s.body.tree = v.Value()
		case "form":
			s.body.tree = d.pairs(v, "form")
		case "text":
			s.body.text, _ = d.f.Text(v, "text")
		}
	}
	return s
}

// credential reads where the one credential must be.
func (d decoder) credential(n *strictyaml.Node) string {
	text, ok := d.f.Text(n, "credential")
	place, inBody := strings.CutPrefix(text, placeBody)
	if ok && text != placeNone && text != placeCertificate && (!inBody || place == "") && !httpguts.ValidHeaderFieldName(text) {
		d.f.Report(n.Pos, "word", "the name of a header, body /MEMBER, body FIELD, client certificate, or none", "%q is no place of a credential", text)
	}
	return text
}

// pairs reads the names and values of a query or a form; mappings inside each
// other become names in brackets, as they are sent. A list is the same name
// several times in a query and numbers in brackets in a form.
func (d decoder) pairs(n *strictyaml.Node, what string) url.Values {
	out := url.Values{}
	if n == nil || !d.f.Is(n, strictyaml.Mapping, what) {
		return out
	}
	for _, m := range n.Members {
		d.pair(out, m.Key, m.Value, what)
	}
	return out
}

func (d decoder) pair(out url.Values, name string, n *strictyaml.Node, what string) {
	switch {
	case n.Kind == strictyaml.Mapping:
		for _, m := range n.Members {
			d.pair(out, name+"["+m.Key+"]", m.Value, what)
		}
	case n.Kind == strictyaml.Sequence && what == "form":
		for i, it := range n.Items {
			d.pair(out, name+"["+strconv.Itoa(i)+"]", it, what)
		}
	case n.Kind == strictyaml.Sequence:
		for _, it := range n.Items {
			d.pair(out, name, it, what)
		}
	case n.Kind == strictyaml.Bool:
		out.Add(name, strconv.FormatBool(n.Truth))
	default:
		out[name] = append(out[name], d.values(n, what+" "+name)...)
	}
}
