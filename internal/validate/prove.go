package validate

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/fault"
)

// Raw is what came from the wire: hostile. Nothing outside this package needs
// to read its body, but to record and to search it.
type Raw struct {
	Status          int
	Header, Trailer http.Header
	Body            []byte
}

// Prove reads one answer: transport, strict parse, exactly one row, expect,
// picks, result schema, checks. Every stage is a type that only the stage
// before can make, so that none can be left out. It returns a proved answer or
// a rejection, never both and never neither.
func (r *Reader) Prove(raw Raw, scope Scope, now time.Time) (*Proved, *Rejection) {
	got, no := r.receive(raw)
	if no != nil {
		return nil, no
	}
	if p := got.undeclared(); p != nil {
		return p, nil
	}
	doc, no := got.parse()
	if no != nil {
		return nil, no
	}
	one, no := doc.choose(scope)
	if no != nil {
		return nil, no
	}
	fit, no := one.expect()
	if no != nil {
		return nil, no
	}
	values, no := fit.pick()
	if no != nil {
		return nil, no
	}
	whole, no := values.shape()
	if no != nil {
		return nil, no
	}
	return whole.prove(now)
}

// origin is carried through the stages. Its zero value belongs to no reader,
// and every stage refuses it.
type origin struct {
	reader *Reader
	status int
	header http.Header
	row    string
}

func (o origin) reject(layer, rule, format string, args ...any) *Rejection {
	return &Rejection{Layer: layer, Rule: rule, Message: fmt.Sprintf(format, args...), Row: o.row, Status: o.status}
}

// skipped is the refusal of a stage that nothing led to.
func (o origin) skipped(layer string) *Rejection {
	if o.reader == nil || o.reader.result == nil {
		return o.reject(layer, "stage-skipped", "the answer did not pass the stages before")
	}
	return nil
}

func (o origin) violation(layer string, v *Violation) *Rejection {
	r := o.reject(layer, v.Rule, "%s", v.Message)
	r.SchemaPath, r.InstancePath, r.EnginesDiffer = v.SchemaPath, v.InstancePath, v.EnginesDiffer
	return r
}

// received passed the transport layer.
type received struct {
	origin
	body []byte
	rows []row // those of this status
}

func (r *Reader) receive(raw Raw) (received, *Rejection) {
	o := origin{reader: r, status: raw.Status, header: canonicalHeader(raw.Header)}
	if no := o.skipped(LayerTransport); no != nil {
		return received{}, no
	}
	switch {
	case raw.Status < 200 || raw.Status > 599:
		return received{}, o.reject(LayerTransport, "status", "not a final HTTP status")
	case len(o.header.Values("Content-Encoding")) > 0:
		return received{}, o.reject(LayerTransport, "content-encoding", "the body is encoded; none was asked for")
	case len(raw.Body) > r.limits.Bytes:
		return received{}, o.reject(LayerTransport, ruleBytes, "the body has more than %d bytes", r.limits.Bytes)
	}
	got := received{origin: o, body: raw.Body}
	for _, w := range r.rows {
		if slices.Contains(w.status, raw.Status) {
			got.rows = append(got.rows, w)
		}
	}
	return got, nil
}

// canonicalHeader makes look-ups certain: one spelling for every name.
func canonicalHeader(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, lines := range h {
		key := http.CanonicalHeaderKey(name)
		out[key] = append(out[key], lines...)
	}
	return out
}

// undeclared gives the built-in meaning of a status that no row names.
func (g received) undeclared() *Proved {
	if len(g.rows) > 0 {
		return nil
	}
	return g.reader.builtin(g.status)
}

// document is a body that was parsed for the rows whose media fits.
type document struct {
	origin
	rows    []row
	value   any
	present bool
}

func (g received) parse() (document, *Rejection) {
	if no := g.skipped(LayerParse); no != nil {
		return document{}, no
	}
	if len(g.rows) == 0 {
		return document{}, g.reject(LayerOutcome, "status", "no row names this status")
	}
	media, ok := g.media()
	if !ok {
		return document{}, g.reject(LayerOutcome, "media", "the content type or an empty body fits none of the %d rows of this status", len(g.rows))
	}
	doc := document{origin: g.origin, present: media != MediaNone}
	for _, w := range g.rows {
		if w.media == media {
			doc.rows = append(doc.rows, w)
		}
	}
	form := mediaForms[media]
	v, _, err := form.Read(g.body, g.reader.limits)
	if pe, is := err.(*ParseError); is {
		no := g.reject(LayerParse, pe.Rule, "line %d, column %d: %s", pe.Line, pe.Column, parseSentence(pe.Rule))
		no.InstancePath = pe.Pointer
		return document{}, no
	}
	if err != nil { // no reader returns another error; if one did, nothing was read
		return document{}, g.reject(LayerParse, ruleSyntax, "the body could not be read")
	}
	doc.value = v
	return doc, nil
}

// mediaForms says how a body of each media is read.
var mediaForms = map[Media]*Form{
	MediaJSON: {spec: FormSpec{Kind: FormJSON}},
	MediaText: {spec: FormSpec{Kind: FormText}},
	MediaNone: {spec: FormSpec{Kind: FormNone}},
}

// media decides what the body is, for the rows of this status. No bytes are
// none where a row reads none; what the headers call JSON is otherwise JSON.
func (g received) media() (Media, bool) {
	wanted := func(m Media) bool {
		return slices.ContainsFunc(g.rows, func(w row) bool { return w.media == m })
	}
	if len(g.body) == 0 && wanted(MediaNone) {
		return MediaNone, true
	}
	declared, ok := g.declared()
	return declared, ok && wanted(declared)
}

// declared reads Content-Type: it must stand once, and a charset must be UTF-8.
func (g received) declared() (Media, bool) {
	lines := g.header.Values("Content-Type")
	if len(lines) != 1 {
		return 0, false
	}
	name, params, err := mime.ParseMediaType(lines[0])
	if err != nil {
		return 0, false
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return 0, false
	}
	switch {
	case name == "application/json", strings.HasSuffix(name, "+json"):
		return MediaJSON, true
	case strings.HasPrefix(name, "text/"):
		return MediaText, true
	}
	return 0, false
}

// chosen is a document with the one row that matches it.
type chosen struct {
	origin
	row  row
	from source
}

func (d document) choose(scope Scope) (chosen, *Rejection) {
	if no := d.skipped(LayerOutcome); no != nil {
		return chosen{}, no
	}
	at := view{value: d.value, present: d.present, scope: scope}
	hits, doubts := matching(d.rows, at, false)
	if len(hits) == 0 && doubts == 0 {
		hits, doubts = matching(d.rows, at, true)
	}
	switch len(hits) {
	case 0:
		return chosen{}, d.reject(LayerOutcome, "no-row", "of %d rows of this status and media none matches; %d cannot be told, because a value is absent or of the wrong type", len(d.rows), doubts)
	case 1:
		o := d.origin
		o.row = hits[0].name
		return chosen{o, hits[0], source{view: at, header: o.header, host: o.reader.host}}, nil
	}
	return chosen{}, d.reject(LayerOutcome, "several-rows", "%s and %s both match", hits[0].name, hits[1].name)
}

// matching returns the rows that match and how many cannot be told; those of a
// poll that say pending are looked at by themselves, after all others are false.
func matching(rows []row, at view, pending bool) (hits []row, doubts int) {
	for _, w := range rows {
		if w.pending != pending {
			continue
		}
		verdict := yes
		if w.when != nil {
			verdict = w.when(at)
		}
		switch verdict {
		case yes:
			hits = append(hits, w)
		case unknown:
			doubts++
		}
	}
	return hits, doubts
}

// fitted is a chosen row whose expect the body satisfies.
type fitted struct{ chosen }

func (c chosen) expect() (fitted, *Rejection) {
	if no := c.skipped(LayerSchema); no != nil {
		return fitted{}, no
	}
	if c.row.expect != nil {
		if v := c.row.expect.validateParsed(c.from.value); v != nil {
			return fitted{}, c.violation(LayerSchema, v)
		}
	}
	return fitted{c}, nil
}

// picked holds the new values, on their way: nothing of them may leave yet.
type picked struct {
	fitted
	out Proved
}

func (f fitted) pick() (picked, *Rejection) {
	if no := f.skipped(LayerPick); no != nil {
		return picked{}, no
	}
	p := picked{fitted: f, out: Proved{
		row: f.row.name, notDone: f.row.notDone, carries: f.row.carries,
		pending: f.row.pending, took: f.row.took, said: f.row.said,
	}}
	if f.row.ends == endsFailure {
		code, no := f.code()
		p.out.code = code
		return p, no
	}
	var pf *pickFault
	if p.out.captured, pf = f.row.capture.take(f.from); pf != nil {
		return f.missed("capture", pf)
	}
	if len(Canonical(p.out.captured)) > capturedBytes {
		return picked{}, f.reject(LayerPick, "capture-bytes", "capture: the values have more than %d bytes together", capturedBytes)
	}
	if f.row.ends != endsSuccess {
		return p, nil
	}
	p.out.success = true
	if p.out.data, pf = f.row.success.take(f.from); pf != nil {
		return f.missed("success", pf)
	}
	shown, pf := f.row.display.take(f.from)
	if pf != nil {
		return f.missed("display", pf)
	}
	p.out.display = map[string]DisplayText{}
	for name, v := range shown {
		text, ok := v.(string)
		if !ok {
			return picked{}, f.reject(LayerPick, "display", "display.%s: is no text", name)
		}
		p.out.display[name] = cleanDisplay(text, f.reader.display[name])
	}
	return p, nil
}

// missed ends the picking. A find that met nothing is the declared answer
// NOT_FOUND, which says nothing about took_effect; everything else is an answer
// that the contract does not allow.
func (f fitted) missed(part string, pf *pickFault) (picked, *Rejection) {
	if pf.notFound {
		return picked{fitted: f, out: Proved{row: f.row.name, code: string(fault.NotFound), missed: f.reader.step != StepLookup}}, nil
	}
	return picked{}, f.reject(LayerPick, pf.rule, "%s.%s: %s", part, pf.where, pf.message)
}

// code gives the code of a failure row. A vendor's code that is not listed is
// never mapped to a near one.
func (f fitted) code() (string, *Rejection) {
	w := f.row.failure
	if w.code != "" {
		return w.code, nil
	}
	v, ok := f.from.at(w.at)
	vendor, isText := v.(string)
	if n, isNumber := v.(json.Number); isNumber {
		d, _ := parseDecimal(n)
		vendor, isText = d.canonical(), d.isInteger()
	}
	if !ok || !isText {
		return "", f.reject(LayerOutcome, "failure-code", "failure: %s holds no code", w.at)
	}
	if ours, known := w.by[vendor]; known {
		return ours, nil
	}
	if w.other == "" {
		return "", f.reject(LayerOutcome, "failure-code", "failure: the code at %s is not in the map", w.at)
	}
	return w.other, nil
}

// shaped is a picked result that the result schema accepts.
type shaped struct{ picked }

func (p picked) shape() (shaped, *Rejection) {
	if no := p.skipped(LayerResult); no != nil {
		return shaped{}, no
	}
	if p.out.success {
		if v := p.reader.result.Validate(p.out.data); v != nil {
			return shaped{}, p.violation(LayerResult, v)
		}
	}
	return shaped{p}, nil
}

// prove runs the checks and gives the proved answer away.
func (s shaped) prove(now time.Time) (*Proved, *Rejection) {
	if no := s.skipped(LayerCheck); no != nil {
		return nil, no
	}
	if s.out.success {
		f := facts{s.out.data, s.from.view, s.from.scope, now}
		for _, c := range s.reader.checks {
			if !c.appliesTo(s.row) {
				continue
			}
			if fault := c.holds(f); fault != nil {
				no := s.reject(LayerCheck, fault.rule, "%s: %s", c, fault.why)
				no.Check = c.name
				return nil, no
			}
		}
	}
	out := s.out
	out.ok = true
	return &out, nil
}
