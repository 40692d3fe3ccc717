package contracttest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/validate"
)

// The kinds of near-miss. Their words stand in reports and in the page about
// contract tests.
const (
	kindExtra     = "extra member"
	kindError     = "error beside data"
	kindRemoved   = "member removed"
	kindNull      = "null"
	kindType      = "other type"
	kindNumber    = "number as text"
	kindText      = "text as number"
	kindEmpty     = "empty string"
	kindOversized = "oversized string"
	kindListed    = "other listed value"
	kindUnlisted  = "unlisted value"
	kindSubject   = "other subject"
	kindOld       = "older time"
	kindFuture    = "future time"
	kindTwice     = "duplicate member"
	kindMedia     = "wrong media type"
	kindCut       = "truncated body"
	kindTrailing  = "trailing bytes"
	kindSecond    = "second document"
	kindHeader    = "header"
	kindBody      = "body where none belongs"
	kindUTF8      = "invalid UTF-8"
)

// Bounds of the near-misses of one answer. They keep a very large answer from
// taking the whole run.
const (
	// elementsTried are the elements of one array that are changed: those of a
	// list are read alike.
	elementsTried = 3
	// listedTried are the other values of one enum that are tried.
	listedTried = 5
	// mutantsTried bounds the near-misses of one answer; a report says where
	// it was met.
	mutantsTried = 5000
	// oversizedText is longer than any text that a contract may let out where
	// its schema gives no bound of its own.
	oversizedText = 70_000
)

// mutant is one near-miss of an answer.
type mutant struct {
	kind  string
	path  []string
	value string // what stands there now, for people
	raw   validate.Raw
	said  said // what the baseline's row says about the place
}

// breeder makes the near-misses of one answer.
type breeder struct {
	base   provedAnswer
	row    *rowText
	out    *outline
	doc    any // the parsed body, nil where there is none
	media  validate.Media
	made   []mutant
	capped bool
}

// breed makes every near-miss of the answer.
func (b *breeder) breed() {
	b.wrongMedia()
	b.headers()
	switch b.media {
	case validate.MediaJSON:
		b.wholeBody()
		b.places(b.doc, nil)
		b.subjects()
		b.times()
	case validate.MediaText:
		b.bytes(kindUTF8, append(slices.Clone(b.base.raw.Body), 0xff), "a byte that is no UTF-8")
	case validate.MediaNone:
		b.with(kindBody, "application/json", []byte("{}"), "{} as application/json")
		b.with(kindBody, "", []byte("{}"), "{} without a Content-Type")
	}
}

func (b *breeder) add(m mutant) {
	if len(b.made) >= mutantsTried {
		b.capped = true
		return
	}
	b.made = append(b.made, m)
}

// put adds a near-miss with another value at one place.
func (b *breeder) put(kind string, path []string, value any) {
	shown := "(gone)"
	if _, gone := value.(removed); !gone {
		shown = string(encode(value))
	}
	b.document(kind, path, edit(b.doc, path, value), shown)
}

func (b *breeder) document(kind string, path []string, doc any, shown string) {
	raw := b.base.raw
	raw.Body = encode(doc)
	b.add(mutant{kind: kind, path: path, value: shown, raw: raw, said: saidOf(b.row.expect, path)})
}

func (b *breeder) bytes(kind string, body []byte, shown string) {
	raw := b.base.raw
	raw.Body = body
	b.add(mutant{kind: kind, value: shown, raw: raw})
}

// with is another body under another media type, "" for none.
func (b *breeder) with(kind, mime string, body []byte, shown string) {
	raw := b.base.raw
	raw.Body, raw.Header = body, raw.Header.Clone()
	if raw.Header == nil {
		raw.Header = http.Header{}
	}
	raw.Header.Del("Content-Type")
	if mime != "" {
		raw.Header.Set("Content-Type", mime)
	}
	b.add(mutant{kind: kind, value: shown, raw: raw})
}

// wrongMedia says something else about the same bytes.
func (b *breeder) wrongMedia() {
	body := b.base.raw.Body
	if b.media == validate.MediaNone {
		return // zero bytes are none whatever the headers say
	}
	b.with(kindMedia, "", body, "no Content-Type")
	b.with(kindMedia, "application/octet-stream", body, "application/octet-stream")
	switch b.media {
	case validate.MediaJSON:
		b.with(kindMedia, "text/html; charset=utf-8", body, "text/html")
		b.with(kindMedia, "application/json; charset=iso-8859-1", body, "application/json in another encoding")
	case validate.MediaText:
		b.with(kindMedia, "text/plain; charset=iso-8859-1", body, "text/plain in another encoding")
	}
}

// wholeBody spoils the bytes around a JSON document.
func (b *breeder) wholeBody() {
	body := b.base.raw.Body
	if n := typeName(b.doc); n == "object" || n == "array" || n == "string" {
		whole := bytes.TrimRight(body, " \t\r\n")
		b.bytes(kindCut, whole[:len(whole)-1], "without its last byte")
		b.bytes(kindCut, whole[:len(whole)/2], "its first half")
	}
	b.bytes(kindCut, nil, "no byte at all")
	b.bytes(kindTrailing, append(slices.Clone(body), []byte(" x")...), "x behind the document")
	b.bytes(kindTrailing, append(slices.Clone(body), 0), "a zero byte behind the document")
	b.bytes(kindSecond, append(slices.Clone(body), []byte("\n{}")...), "{} behind the document")
	b.bytes(kindSecond, append(append(slices.Clone(body), '\n'), body...), "the document twice")
}

// headers changes the headers that the row picks from.
func (b *breeder) headers() {
	for _, part := range []string{"success", "display", "capture"} {
		for _, p := range b.row.picks(part) {
			h := p.Value.Get("header")
			if h == nil {
				continue
			}
			change := func(shown string, f func(http.Header)) {
				raw := b.base.raw
				raw.Header = raw.Header.Clone()
				f(raw.Header)
				b.add(mutant{kind: kindHeader, path: []string{http.CanonicalHeaderKey(h.Text)}, value: shown, raw: raw})
			}
			old := b.base.raw.Header.Get(h.Text)
			change("gone", func(x http.Header) { x.Del(h.Text) })
			change("twice", func(x http.Header) { x.Add(h.Text, old) })
			change("empty", func(x http.Header) { x.Set(h.Text, "") })
		}
	}
}

// places walks the document.
func (b *breeder) places(v any, path []string) {
	here := saidOf(b.row.expect, path)
	read := b.reads(path)
	if here.open && !here.named() && !read {
		b.put(kindNull, path, nil) // one is as good as another: nobody looks
		return
	}
	b.types(v, path)
	switch v := v.(type) {
	case map[string]any:
		b.object(v, path)
	case []any:
		for i, it := range v[:min(len(v), elementsTried)] {
			b.places(it, below(path, strconv.Itoa(i)))
		}
	case string:
		b.text(v, path, here)
	case bool:
		b.put(kindListed, path, !v)
	case json.Number:
		b.put(kindNumber, path, string(v))
		b.listed(v, path, here)
	}
}

// reads says whether the row looks at the place, at something in it or at
// something that holds it.
func (b *breeder) reads(path []string) bool {
	return slices.ContainsFunc(b.row.reads, func(r readPlace) bool { return r.covers(path) }) || b.signs(path)
}

// signs says whether a check reads its signed text there.
func (b *breeder) signs(path []string) bool {
	for _, c := range b.out.checks {
		if c.kind == "signed" && c.node.Get("jws") != nil && (readPlace{path: split(c.node.Get("jws").Text)}).covers(path) {
			return true
		}
	}
	return false
}

// errorNames are the members under which services report that something went
// wrong.
var errorNames = []string{"error", "errors"}

// errorValue is an error as it would stand under a name: in the form that expect
// takes there, where it takes one.
func errorValue(name string, there said) any {
	one := map[string]any{"code": "internal_error", "message": "it did not work"}
	forms := []any{one, "internal_error", []any{one}}
	if name == "errors" {
		forms = []any{[]any{one}, one, "internal_error"}
	}
	for _, f := range forms {
		if there.named() && there.takes(f) {
			return f
		}
	}
	return forms[0]
}

// extraName is a member that no service has.
const extraName = "near_miss"

func (b *breeder) object(v map[string]any, path []string) {
	b.put(kindExtra, below(path, extraName), "unexpected")
	if len(path) <= 1 { // the whole answer, and what it is wrapped in
		for _, name := range errorNames {
			if _, there := v[name]; !there {
				b.put(kindError, below(path, name), errorValue(name, saidOf(b.row.expect, below(path, name))))
			}
		}
	}
	if len(v) > 0 {
		raw := b.base.raw
		raw.Body = encodeTwice(b.doc, pointerOf(path))
		b.add(mutant{kind: kindTwice, path: path, value: "a member twice", raw: raw, said: saidOf(b.row.expect, path)})
	}
	for _, name := range sortedNames(v) {
		inner := below(path, name)
		b.put(kindRemoved, inner, removed{})
		b.places(v[name], inner)
	}
}

// types puts null and values of other types in the place.
func (b *breeder) types(v any, path []string) {
	if v != nil {
		b.put(kindNull, path, nil)
	}
	others := []any{map[string]any{}, []any{}, "near miss", json.Number("7"), true}
	for _, o := range others {
		switch {
		case typeName(o) == typeName(v):
		case typeName(v) == "string" && typeName(o) == "number":
			b.put(kindText, path, o)
		case typeName(v) == "number" && typeName(o) == "string": // that number as text is tried instead
		case typeName(v) == "object" && typeName(o) == "array":
			b.put(kindType, path, []any{v})
		case typeName(v) == "array" && typeName(o) == "object":
			b.put(kindType, path, first(v.([]any)))
		default:
			b.put(kindType, path, o)
		}
	}
}

// first is what a service sends that forgets the array around one element.
func first(list []any) any {
	for _, it := range list {
		if m, ok := it.(map[string]any); ok {
			return m
		}
	}
	return map[string]any{}
}

func (b *breeder) text(v string, path []string, here said) {
	b.put(kindEmpty, path, "")
	size := oversizedText
	if n, ok := here.number("maxLength"); ok {
		size = n + 1
	}
	if size > len(v) {
		b.document(kindOversized, path, edit(b.doc, path, longText(v, size)), strconv.Itoa(size)+" characters")
	}
	b.listed(v, path, here)
	if here.enum() != nil || b.mapped(path) {
		b.put(kindUnlisted, path, v+"-near-miss")
	}
}

// longText repeats the last letter or digit, so that a pattern finds nothing
// but the length.
func longText(v string, size int) string {
	fill := "a"
	if n := len(v); n > 0 && isWordByte(v[n-1]) {
		fill = v[n-1:]
	}
	return v + strings.Repeat(fill, size-len([]rune(v)))
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (b *breeder) listed(v any, path []string, here said) {
	tried := 0
	for _, e := range here.enum() {
		if tried < listedTried && typeName(e) == typeName(v) && !validate.Equal(e, v) {
			b.put(kindListed, path, e)
			tried++
		}
	}
}

// mapped says whether a pick translates what stands in the place.
func (b *breeder) mapped(path []string) bool {
	return slices.ContainsFunc(b.row.reads, func(r readPlace) bool { return r.pick.Get("map") != nil && !r.find && r.exactly(path) })
}
