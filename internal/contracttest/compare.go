package contracttest

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/validate"
)

// shown is how much of a text a report repeats: enough to see what differs in
// a usual answer.
const shown = 600

// comparison collects what differs.
type comparison struct {
	g     got
	diffs []Diff
}

func (c *comparison) differ(what, want, got string) {
	c.diffs = append(c.diffs, Diff{What: what, Want: c.clean(want), Got: c.clean(got)})
}

// clean masks the planted secret and cuts.
func (c *comparison) clean(s string) string {
	if c.g.cred.secret != nil {
		s = string(c.g.cred.secret.Mask([]byte(s)))
	}
	if len(s) > shown {
		s = strings.ToValidUTF8(s[:shown], "") + "…"
	}
	return s
}

// compare holds what happened to what a fixture wants.
func compare(w want, g got) []Diff {
	c := &comparison{g: g}
	c.outcome(w)
	c.script()
	for i, r := range g.requests {
		c.carriesOneCredential(fmt.Sprintf("sent[%d]", i), r)
	}
	if w.hasSent {
		c.sent(w.sent)
	}
	return c.diffs
}

// outcome compares success, data and display, or code and layer.
func (c *comparison) outcome(w want) {
	if w.ok != c.g.ok {
		c.differ("outcome", outcomeOf(w.ok, w.code, w.layer), outcomeOf(c.g.ok, c.g.code(), c.g.layer()))
		return
	}
	if !w.ok {
		if w.code != c.g.code() {
			c.differ("code", w.code, c.g.code())
		}
		if w.layer != "" && w.layer != c.g.layer() {
			c.differ("layer", w.layer, orNone(c.g.layer()))
		}
		return
	}
	c.value("data", w.data, c.g.data)
	if w.hasShown || len(c.g.display) > 0 {
		wanted := w.display
		if !w.hasShown {
			wanted = map[string]any{}
		}
		c.value("display", wanted, c.g.display)
	}
}

// diffsShown bounds the members of one document that a report tells apart.
const diffsShown = 20

// value compares two documents and tells each member that differs.
func (c *comparison) value(what string, want, got any) {
	doc, _, err := plain(got)
	if err != nil {
		c.differ(what, string(validate.Canonical(want)), "not a document: "+err.Error())
		return
	}
	var found []Diff
	apart(what, want, doc, &found)
	for i, d := range found {
		if i == diffsShown {
			c.differ(what, "the same document", fmt.Sprintf("%d more members differ", len(found)-i))
			return
		}
		c.differ(d.What, d.Want, d.Got)
	}
}

// nothing stands for a member that is not there.
const nothing = "(absent)"

// apart finds the innermost members that differ.
func apart(what string, want, got any, out *[]Diff) {
	if validate.Equal(want, got) {
		return
	}
	a, isObject := want.(map[string]any)
	b, also := got.(map[string]any)
	if isObject && also {
		names := map[string]bool{}
		for n := range a {
			names[n] = true
		}
		for n := range b {
			names[n] = true
		}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			x, here := a[n]
			y, there := b[n]
			switch {
			case !here:
				*out = append(*out, Diff{what + "." + n, nothing, string(validate.Canonical(y))})
			case !there:
				*out = append(*out, Diff{what + "." + n, string(validate.Canonical(x)), nothing})
			default:
				apart(what+"."+n, x, y, out)
			}
		}
		return
	}
	x, isList := want.([]any)
	y, also := got.([]any)
	if isList && also && len(x) == len(y) {
		for i := range x {
			apart(fmt.Sprintf("%s[%d]", what, i), x[i], y[i], out)
		}
		return
	}
	*out = append(*out, Diff{what, string(validate.Canonical(want)), string(validate.Canonical(got))})
}

func outcomeOf(ok bool, code, layer string) string {
	switch {
	case ok:
		return "ok"
	case layer != "":
		return code + " at " + layer
	}
	return code
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func beyondLast(n int) string {
	if n == 1 {
		return "1 request beyond the last answer"
	}
	return fmt.Sprintf("%d requests beyond the last answer", n)
}

// script holds the number of requests to the number of answers, and every
// connection to the target's own address.
func (c *comparison) script() {
	if c.g.extra > 0 {
		c.differ("answers", "one for each request", beyondLast(c.g.extra))
	}
	for _, s := range c.g.strays {
		c.differ("answers", "each for the step that is sent", s)
	}
	if c.g.unused > 0 && len(c.g.strays) == 0 {
		c.differ("answers", "each asked for", fmt.Sprintf("%d that nobody asked for", c.g.unused))
	}
	if c.g.target == nil {
		return
	}
	want := net.JoinHostPort(c.g.target.Host(), strconv.Itoa(c.g.target.Port()))
	for _, addr := range c.g.wanted {
		if addr != want {
			c.differ("address", want, addr)
		}
	}
}

// carriesOneCredential wants the secret in the one place that the identity has,
// and nowhere else in the bytes or in the handshake.
func (c *comparison) carriesOneCredential(what string, r upstream.Request) {
	name, value := c.g.cred.line()
	rest := r.Raw
	switch {
	case c.g.cred.certificate != nil:
		if !c.g.cred.shown(r.TLS) {
			c.differ(what+".credential", "the identity's certificate in the handshake", "another one, or none")
		}
	case c.g.cred.bodyPlace() != "":
		if !c.g.cred.inBody(r.Body) {
			c.differ(what+".credential", c.g.cred.place(), "not there")
		}
		rest = bytes.Replace(r.Raw, []byte(c.g.cred.secret.Text()), nil, 1)
	case name != "":
		line := []byte("\r\n" + name + ": " + value + "\r\n")
		rest = bytes.Replace(r.Raw, line, []byte("\r\n"), 1)
		if lines := bytes.Count(r.Head(), line); lines != 1 {
			c.differ(what+".credential", "one line "+name, fmt.Sprintf("%d of them", lines))
		}
	}
	if c.g.cred.certificate == nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		c.differ(what+".credential", "nowhere else", "also in the handshake as a certificate")
	}
	if found := c.g.cred.secret.In(rest); len(found) > 0 {
		c.differ(what+".credential", "nowhere else", "also in the request as "+strings.Join(found, ", "))
	}
	if host := hostOf(c.g); r.Host != host {
		c.differ(what+".host", host, r.Host)
	}
}

// hostOf is the Host header that the target's address asks for.
func hostOf(g got) string {
	t := g.target
	host := t.Host()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Scheme() == "https" && t.Port() == 443 || t.Scheme() == "http" && t.Port() == 80 {
		return host
	}
	return host + ":" + strconv.Itoa(t.Port())
}

// sent compares what left with what must have left, request by request.
func (c *comparison) sent(want []sent) {
	if len(want) != len(c.g.requests) {
		c.differ("sent", requests(len(want)), requests(len(c.g.requests)))
	}
	for i := range min(len(want), len(c.g.requests)) {
		what := fmt.Sprintf("sent[%d]", i)
		if i < len(c.g.steps) && want[i].step != c.g.steps[i] {
			c.differ(what+".step", want[i].step, c.g.steps[i])
		}
		c.request(what, want[i], c.g.requests[i])
	}
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return strconv.Itoa(n) + " requests"
}

func (c *comparison) request(what string, w sent, r upstream.Request) {
	if w.method != r.Method {
		c.differ(what+".method", w.method, r.Method)
	}
	if w.path != r.Path {
		c.differ(what+".path", w.path, r.Path)
	}
	c.pairs(what+".query", w.query, r.Query)
	header := r.Header()
	for _, name := range namesOf(w.headers) {
		var values []string
		for _, h := range w.headers {
			if h.Name == name {
				values = append(values, h.Value)
			}
		}
		if !slices.Equal(values, header[name]) {
			c.differ(what+".headers."+name, strings.Join(values, " | "), orNone(strings.Join(header[name], " | ")))
		}
	}
	c.place(what, w.credential)
	c.body(what, w.body, r)
}

func namesOf(headers []upstream.Header) []string {
	var out []string
	for _, h := range headers {
		if !slices.Contains(out, h.Name) {
			out = append(out, h.Name)
		}
	}
	return out
}

// place compares where the fixture says the credential is with where the
// identity puts it; that it is there was seen before.
func (c *comparison) place(what, want string) {
	name, _ := c.g.cred.line()
	place := c.g.cred.place()
	if want != "" && want != place && (name == "" || !strings.EqualFold(want, name)) {
		c.differ(what+".credential", want, place)
	}
}

// pairs compares encoded names and values, whatever their order between names.
func (c *comparison) pairs(what string, want url.Values, encoded string) {
	got, err := url.ParseQuery(encoded)
	if err != nil {
		c.differ(what, want.Encode(), "not encoded: "+encoded)
		return
	}
	if want.Encode() != got.Encode() {
		c.differ(what, orNone(want.Encode()), orNone(got.Encode()))
	}
}

func (c *comparison) body(what string, w body, r upstream.Request) {
	mime := r.Header().Get("Content-Type")
	switch w.form {
	case "":
		if len(r.Body) > 0 {
			c.differ(what+".body", "none", string(r.Body))
		}
	case "text":
		if w.text != string(r.Body) {
			c.differ(what+".text", w.text, string(r.Body))
		}
	case "form":
		if !strings.HasPrefix(mime, "application/x-www-form-urlencoded") {
			c.differ(what+".headers.Content-Type", "application/x-www-form-urlencoded", orNone(mime))
		}
		c.pairs(what+".form", w.tree.(url.Values), string(c.standIn(r.Body)))
	case "json":
		if media, _, _ := strings.Cut(mime, ";"); media != "application/json" && !strings.HasSuffix(media, "+json") {
			c.differ(what+".headers.Content-Type", "application/json", orNone(mime))
		}
		doc, err := validate.Parse(c.standIn(r.Body), validate.AnswerLimits())
		switch {
		case err != nil:
			c.differ(what+".json", string(validate.Canonical(w.tree)), "not strict JSON: "+string(r.Body))
		default:
			c.value(what+".json", w.tree, doc)
		}
	}
}

// standIn writes ${credential} in place of the secret of an identity that is sent
// in the body, as the fixture has it there.
func (c *comparison) standIn(body []byte) []byte {
	place := c.g.cred.bodyPlace()
	if place == "" || !c.g.cred.inBody(body) {
		return body
	}
	text := standInCredential
	if !strings.HasPrefix(place, "/") {
		text = url.QueryEscape(text)
	}
	return bytes.Replace(body, []byte(c.g.cred.secret.Text()), []byte(text), 1)
}

func joined(words []string) string { return strings.Join(words, ", ") }
