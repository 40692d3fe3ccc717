package contracttest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
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
	shortestNumber  = 5
)

// subjects puts another thing's name where the answer names what was asked
// about: in every member that a check `same` binds, and in every picked one
// that repeats a value of the call.
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
		if r.part != "success" || r.find {
			continue
		}
		places := spread(b.doc, r.path)
		if len(places) == 0 || !bound[r.name] && (r.pick.Get("map") != nil || !b.repeats(r, places)) {
			continue
		}
		doc := b.doc
		shown := ""
		for _, p := range places { // of a list all, so that the one found is among them
			old, _ := at(b.doc, p)
			other := otherSubject(old)
			if listed := saidOf(b.row.expect, p).enum(); listed != nil {
				other = otherOf(listed, old)
			}
			if other == nil {
				continue
			}
			doc, shown = edit(doc, p, other), string(encode(other))
		}
		if shown != "" {
			b.document(kindSubject, r.path, doc, shown)
		}
	}
}

// repeats says whether what stands in every place is a value of the call: a
// text long enough, or one under the name that an input has.
func (b *breeder) repeats(r readPlace, places [][]string) bool {
	for _, p := range places {
		v, _ := at(b.doc, p)
		text, ok := v.(string)
		least := shortestSubject
		if n, number := v.(json.Number); number {
			text, ok, least = string(n), true, shortestNumber
		}
		input, named := b.base.inputs[r.name]
		switch {
		case ok && named && input == text:
		case !ok || len(text) < least || !slices.Contains(b.base.known, text):
			return false
		}
	}
	return true
}

// otherSubject is a value of the same shape: every letter and digit is another.
func otherSubject(v any) any {
	switch v := v.(type) {
	case string:
		other := []byte(v)
		changed := false
		for i := len(other) - 1; i >= 0 && !changed; i-- {
			other[i], changed = nextByte(other[i])
		}
		if !changed {
			return v + "x"
		}
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
func nextByte(c byte) (byte, bool) {
	switch {
	case c >= '0' && c < '9', c >= 'a' && c < 'f', c >= 'A' && c < 'F', c > 'f' && c < 'z', c > 'F' && c < 'Z':
		return c + 1, true
	case c == '9':
		return '0', true
	case c == 'f' || c == 'z':
		return 'a', true
	case c == 'F' || c == 'Z':
		return 'A', true
	}
	return c, false
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
