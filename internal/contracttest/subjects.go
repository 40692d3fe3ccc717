package contracttest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

func sortedNames(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// The least length of a text and of a number that is taken for the name of a
// thing when the answer repeats a value of the call; shorter ones are equal by
// chance, unless they stand under the name that the input has.
const (
	shortestSubject = 3
	shortestNumber  = 3
)

// subjects puts another thing's name where the answer names what was asked
// about: in every member that a check `same` binds, and in every picked one
// whose value is one of the call's.
func (b *breeder) subjects() {
	bound := map[string]bool{}
	for _, c := range b.out.checks {
		if c.kind == "same" {
			for _, m := range c.members() {
				bound[m] = true
			}
		}
	}
	for _, r := range b.row.reads {
		if r.find || r.each != nil || r.part != "success" && r.part != "capture" {
			continue
		}
		if r.part == "success" && bound[r.name] || b.repeats(r) {
			b.subject(r)
		}
	}
}

// subject changes one picked member: of a list in every element, so that the one
// found is among them. A name is changed in several places, because it has to
// stay one that the patterns take.
func (b *breeder) subject(r readPlace) {
	for variant := range subjectVariants {
		doc, shown := b.doc, ""
		for _, p := range spread(b.doc, r.path) {
			old, _ := at(b.doc, p)
			if other := b.other(r, p, old, variant); other != nil && !validate.Equal(other, old) {
				doc, shown = edit(doc, p, other), string(encode(other))
			}
		}
		if shown != "" {
			b.document(kindSubject, r.path, doc, shown)
		}
	}
}

// other is another thing's name in the place of old.
func (b *breeder) other(r readPlace, path []string, old any, variant int) any {
	if m := r.pick.Get("map"); m != nil {
		return otherWord(m, old)
	}
	if listed := saidOf(b.row.expect, path).enum(); listed != nil {
		return otherOf(listed, old)
	}
	if listed := saidOf(b.out.root.Get("result").Value(), []string{r.name}).enum(); listed != nil {
		return otherOf(listed, old)
	}
	if text, ok := old.(string); ok && saysYes(r.pick, "last_segment") {
		// Only the last part of an address is read.
		cut := strings.LastIndexByte(strings.TrimRight(text, "/"), '/') + 1
		last, _ := otherSubject(text[cut:], variant).(string)
		return text[:cut] + last
	}
	return otherSubject(old, variant)
}

// otherWord is a vendor's word that the map gives another meaning than old's.
func otherWord(words *strictyaml.Node, old any) any {
	text, _ := old.(string)
	mine := words.Get(text)
	for _, m := range words.Members {
		if mine != nil && !validate.Equal(m.Value.Value(), mine.Value()) {
			return m.Key
		}
	}
	return nil
}

// repeats says whether what is picked is a value of the call: a text long
// enough, or one under the name that an input or a constant has.
func (b *breeder) repeats(r readPlace) bool {
	if b.base.proved == nil {
		return false
	}
	values := b.base.proved.Data()
	if r.part == "capture" {
		values, _ = b.base.proved.Captured()
	}
	v := values[r.name]
	text, ok := v.(string)
	least := shortestSubject
	if n, number := v.(json.Number); number {
		text, ok, least = string(n), true, shortestNumber
	}
	if !ok {
		return false
	}
	return b.base.named[r.name] == text || len(text) >= least && slices.Contains(b.base.known, text)
}

// subjectVariants are the places in which a name is changed: its end, its
// beginning, its middle.
const subjectVariants = 3

// otherSubject is a value of the same shape.
func otherSubject(v any, variant int) any {
	switch v := v.(type) {
	case string:
		var places []int
		for i := range len(v) {
			if isWordByte(v[i]) {
				places = append(places, i)
			}
		}
		if len(places) == 0 {
			return v + "x"
		}
		i := places[[subjectVariants]int{len(places) - 1, 0, len(places) / 2}[variant]]
		other := []byte(v)
		other[i] = nextByte(other[i])
		return string(other)
	case json.Number:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || n == 1<<62 {
			return nil
		}
		return json.Number(strconv.FormatInt(n+1, 10))
	case bool:
		return !v
	}
	return nil
}

// nextByte turns a letter or digit into the next one of its kind; a hex digit
// stays one.
func nextByte(c byte) byte {
	switch {
	case c >= '0' && c < '9', c >= 'a' && c < 'f', c >= 'A' && c < 'F', c > 'f' && c < 'z', c > 'F' && c < 'Z':
		return c + 1
	case c == '9':
		return '0'
	case c == 'f' || c == 'z':
		return 'a'
	case c == 'F' || c == 'Z':
		return 'A'
	}
	return c
}

func otherOf(list []any, v any) any {
	for _, e := range list {
		if typeName(e) == typeName(v) && !validate.Equal(e, v) {
			return e
		}
	}
	return nil
}

// beyond is how far past a check's own limit a shifted time lies.
const beyond = time.Hour

// times puts times beyond the limits of fresh and after_call.
func (b *breeder) times() {
	for _, c := range b.out.checks {
		if c.kind != "fresh" && c.kind != "after_call" {
			continue
		}
		within, skew := duration(c.node.Get("within")), duration(c.node.Get("skew"))
		for _, member := range c.members() {
			b.shift(kindOld, member, b.base.now.Add(-within-skew-beyond))
			if c.kind == "fresh" {
				b.shift(kindFuture, member, b.base.now.Add(within+skew+beyond))
			}
		}
	}
}

func duration(n *strictyaml.Node) time.Duration {
	if n == nil {
		return 0
	}
	d, _ := time.ParseDuration(n.Text) // the loader has read it
	return d
}

// shift writes a moment where a member of the result is picked from, in the
// form that the pick reads.
func (b *breeder) shift(kind, member string, to time.Time) {
	for _, r := range b.row.reads {
		if r.part != "success" || r.find || r.name != member {
			continue
		}
		doc, shown := b.doc, ""
		for _, p := range spread(b.doc, r.path) {
			if old, _ := at(b.doc, p); typeName(old) == "string" || typeName(old) == "number" {
				v := written(r.pick, old, to)
				doc, shown = edit(doc, p, v), string(encode(v))
			}
		}
		if shown != "" {
			b.document(kind, r.path, doc, shown)
		}
	}
}

// written is a moment as the old value was written.
func written(pick *strictyaml.Node, old any, to time.Time) any {
	form := ""
	if n := pick.Get("time"); n != nil {
		form = n.Text
	}
	text := ""
	switch form {
	case "unix_seconds":
		text = strconv.FormatInt(to.Unix(), 10)
	case "unix_millis":
		text = strconv.FormatInt(to.UnixMilli(), 10)
	case "unix_nanos":
		text = strconv.FormatInt(to.UnixNano(), 10)
	case "http_date":
		return to.UTC().Format(http.TimeFormat)
	default:
		return to.UTC().Format(time.RFC3339)
	}
	if _, number := old.(json.Number); number {
		return json.Number(text)
	}
	return text
}
