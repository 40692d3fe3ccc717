// Package slips makes every document that is one small slip away from a good
// one, for tests that hold a published schema against the reader of a format. It
// is for tests only and imports nothing of ours; any test may import it.
package slips

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Slip is a document with one mistake.
type Slip struct {
	At   string // where and what, for a person
	JSON string // the document
}

// wrong are values of every kind; one of them is wrong nearly everywhere.
var wrong = []any{
	nil, true, false, json.Number("7"), json.Number("-1.5"), "zzz zzz", "",
	[]any{}, []any{nil}, []any{"zzz"}, map[string]any{}, map[string]any{"zzz": "zzz"},
}

// All tries every wrong value at every place.
const All = 12

// maker walks one document and changes it in place, one thing at a time.
type maker struct {
	doc  any
	each int
	out  []Slip
}

// Of returns the documents: a key too much, a key too few, a key misspelt, a
// value of another kind, a word that is none. At one place each of the wrong
// values are tried (a divisor of All); they go round, so that all are tried
// somewhere. doc holds what a JSON decoder with UseNumber makes; it is as it was
// afterwards.
func Of(doc any, each int) []Slip {
	m := &maker{doc: doc, each: each}
	m.walk(doc, nil, "")
	return m.out
}

// Some returns all slips that add a key, and of the others every so many, so
// that they are about most: a test that must be short tries these.
func Some(all []Slip, most int) []Slip {
	stride := max(1, (len(all)+most-1)/most)
	var out []Slip
	for i, s := range all {
		if i%stride == 0 || strings.HasSuffix(s.At, added) {
			out = append(out, s)
		}
	}
	return out
}

// added ends the place of a slip that adds a key.
const added = " with zzz"

func (m *maker) emit(at string) {
	b, err := json.Marshal(m.doc)
	if err != nil {
		panic("slips: the document is no JSON: " + err.Error())
	}
	m.out = append(m.out, Slip{at, string(b)})
}

func (m *maker) walk(v any, set func(any), at string) {
	if set != nil {
		m.values(v, set, at)
	}
	switch v := v.(type) {
	case map[string]any:
		m.keys(v, at)
	case []any:
		for i := range v {
			m.walk(v[i], func(x any) { v[i] = x }, fmt.Sprintf("%s/%d", at, i))
		}
	}
}

func (m *maker) values(v any, set func(any), at string) {
	for i, w := range wrong {
		if (i+len(m.out))%(len(wrong)/m.each) == 0 {
			set(w)
			m.emit(fmt.Sprintf("%s = %v", at, w))
		}
	}
	if s, ok := v.(string); ok {
		set(s + "z")
		m.emit(at + " + z")
	}
	set(v)
}

func (m *maker) keys(v map[string]any, at string) {
	for _, k := range slices.Sorted(maps.Keys(v)) {
		old := v[k]
		delete(v, k)
		m.emit(at + " without " + k)
		v[k+"z"] = old
		m.emit(at + " with " + k + "z for " + k)
		delete(v, k+"z")
		v[k] = old
		m.walk(old, func(x any) { v[k] = x }, at+"/"+k)
	}
	v["zzz"] = "zzz"
	m.emit(at + added)
	delete(v, "zzz")
}
