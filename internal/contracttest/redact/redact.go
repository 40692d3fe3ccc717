// Package redact makes a fixture of what a real system answered: secrets and
// what belongs to persons become stand-ins of the same shape, the same one for
// the same text, so that an answer still fits its contract and nobody is in it.
// It must never keep a text that it has replaced where others can read it, and
// never derive a stand-in from the text: a short number could be guessed back.
// It is no proof; a person looks through what comes out. Only the contract
// tests' room may import it.
package redact

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The kinds of text that are replaced, as Counts names them.
const (
	kindSecret  = "secret"
	kindToken   = "long token"
	kindEmail   = "e-mail address"
	kindPerson  = "person's name"
	kindPhone   = "phone number"
	kindAddress = "postal address"
	kindNetwork = "network address"
)

// Options say what is left as it is.
type Options struct {
	// Keep says that the value at a place is a word of the contract: an enum's
	// or a constant. nil keeps nothing.
	Keep func(path []string, v any) bool
	// Known are texts of the call itself and the operator's constants, such as
	// an id that was asked about or the owner of a repository. They, and texts
	// that consist of them, are not taken for tokens or for persons; a secret
	// they may still be.
	Known []string
}

// Redactor replaces texts. It is for one call: it remembers what it replaced.
type Redactor struct {
	o      Options
	known  map[string]bool
	stands map[string]string // text → stand-in
	used   map[string]bool   // stand-ins given out
	counts map[string]int
	swept  []string // texts that Sweep looks for inside others
}

// New returns a redactor.
func New(o Options) *Redactor {
	r := &Redactor{o: o, known: map[string]bool{}, stands: map[string]string{}, used: map[string]bool{}, counts: map[string]int{}}
	for _, k := range o.Known {
		r.known[k] = true
	}
	return r
}

// Counts says how many different texts of each kind were replaced.
func (r *Redactor) Counts() map[string]int { return maps.Clone(r.counts) }

// Value returns the document with its secrets and persons replaced. It is made
// of what a JSON parser gives, with json.Number for numbers.
func (r *Redactor) Value(v any) any { return r.value(v, nil) }

// Input returns the inputs of the call. Besides what Value does, a text that an
// answer had, and that was replaced there, is replaced by the same stand-in, so
// that the two still fit. It is called last.
func (r *Redactor) Input(v any) any { return r.met(r.value(v, nil)) }

func (r *Redactor) met(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, it := range v {
			v[name] = r.met(it)
		}
	case []any:
		for i, it := range v {
			v[i] = r.met(it)
		}
	case string:
		if t, ok := r.stands[v]; ok {
			return t
		}
	}
	return v
}

func (r *Redactor) value(v any, path []string) any {
	if r.o.Keep != nil && r.o.Keep(path, v) {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out[name] = r.value(v[name], append(slices.Clone(path), name))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, it := range v {
			out[i] = r.value(it, path) // an element goes by the name of its list
		}
		return out
	case string:
		return r.member(v, path)
	case json.Number:
		return r.number(v, path)
	}
	return v
}

// member replaces a text by what its name says, else by what it looks like.
func (r *Redactor) member(s string, path []string) string {
	if s == "" {
		return s
	}
	switch kind := kindOfName(path); {
	case (kind == kindEmail || kind == kindPerson) && mail.FindString(s) == s:
		return r.email(s)
	case kind == kindEmail:
		return r.person(kindPerson, s)
	case kind == kindPerson, kind == kindAddress:
		return r.person(kind, s)
	case kind != "":
		return r.shape(kind, s)
	}
	return r.Text(s)
}

// person replaces a name that is nobody's of the call, and remembers it for
// Sweep.
func (r *Redactor) person(kind, s string) string {
	if r.ofTheCall(s) {
		return s
	}
	if _, seen := r.stands[s]; !seen && len(s) >= sweptLength {
		r.swept = append(r.swept, s)
	}
	return r.shape(kind, s)
}

// ofTheCall says that a text is known, or that every word of it is.
func (r *Redactor) ofTheCall(s string) bool {
	words := strings.FieldsFunc(s, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '_' && c != '.'
	})
	return r.known[s] || len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !r.known[w] })
}

// sweptLength is the least length of a name that Sweep looks for: a shorter one
// stands in other words.
const sweptLength = 4

// Sweep replaces, inside texts, the names that were met as members elsewhere:
// an address of a person's page holds the name too. It is called once all
// answers have gone through Value.
func (r *Redactor) Sweep(v any) any {
	if len(r.swept) == 0 {
		return v
	}
	// The longest first, so that a first name does not spoil a full one.
	names := slices.Clone(r.swept)
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for i, n := range names {
		names[i] = regexp.QuoteMeta(n)
	}
	inside := regexp.MustCompile(`(^|[^A-Za-z0-9])(` + strings.Join(names, "|") + `)($|[^A-Za-z0-9])`)
	return r.sweep(inside, v, nil)
}

func (r *Redactor) sweep(inside *regexp.Regexp, v any, path []string) any {
	if r.o.Keep != nil && r.o.Keep(path, v) {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, it := range v {
			out[name] = r.sweep(inside, it, append(slices.Clone(path), name))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, it := range v {
			out[i] = r.sweep(inside, it, path)
		}
		return out
	case string:
		// Twice, because two names may share the sign between them.
		for range 2 {
			v = replaceGroup(inside, v, 2, func(name string) string { return r.stands[name] })
		}
		return v
	}
	return v
}

// number replaces a number whose name says that it is a secret or a phone's.
func (r *Redactor) number(n json.Number, path []string) json.Number {
	kind := kindOfName(path)
	if kind != kindSecret && kind != kindPhone || strings.ContainsAny(string(n), ".eE-") || len(n) < 4 {
		return n
	}
	return json.Number(r.shape(kind, string(n)))
}
