package compare

import (
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions/review"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// outcomes compares the rows of a step. Exactly one row must match an answer,
// so their order says nothing; they are paired by what they match.
func (d *differ) outcomes(at string, old, new *strictyaml.Node) {
	before, after := items(old), items(new)
	pairs, gone, come := pairRows(before, after)
	for _, p := range pairs {
		d.section(d.row, at+"/"+itoa(p[1]), before[p[0]], after[p[1]])
	}
	for _, i := range gone {
		d.add("row-removed"+standing(before[i], after), at+"/"+itoa(i), "an answer is not known any more: "+review.RowWords(before[i]), cut(review.RowWords(before[i])), "")
		d.changes[len(d.changes)-1].Line = 0
	}
	for _, i := range come {
		d.add("row-added"+standing(after[i], before), at+"/"+itoa(i), "an answer is known too: "+review.RowWords(after[i]), "", cut(review.RowWords(after[i])))
	}
}

// standing says what stands with a row that came or went, as the end of a kind:
// other rows of its status, a built-in row, or nothing.
func standing(row *strictyaml.Node, others []*strictyaml.Node) string {
	switch {
	case slices.ContainsFunc(others, func(o *strictyaml.Node) bool { return overlap(row, o) }):
		return "-beside"
	case slices.ContainsFunc(statuses(row), builtIn):
		return "-over"
	}
	return ""
}

// builtIn says whether a status has a built-in row.
func builtIn(status string) bool {
	return slices.Contains([]string{"401", "403", "404", "408", "429"}, status) || len(status) == 3 && status[0] == '5'
}

func statuses(row *strictyaml.Node) []string {
	key := "status"
	if row.Get(key) == nil {
		key = "exit"
	}
	out := list(row.Get(key))
	slices.Sort(out)
	return out
}

func overlap(a, b *strictyaml.Node) bool {
	return slices.ContainsFunc(statuses(a), func(s string) bool { return slices.Contains(statuses(b), s) })
}

// sameness are the ways in which two rows are the same one, the surest first.
var sameness = []func(a, b *strictyaml.Node) bool{
	same,
	func(a, b *strictyaml.Node) bool {
		return slices.Equal(statuses(a), statuses(b)) && media(a) == media(b) && same(a.Get("when"), b.Get("when")) && review.Ends(a) == review.Ends(b)
	},
	func(a, b *strictyaml.Node) bool {
		return overlap(a, b) && media(a) == media(b) && same(a.Get("when"), b.Get("when"))
	},
	func(a, b *strictyaml.Node) bool {
		return slices.Equal(statuses(a), statuses(b)) && review.Ends(a) == review.Ends(b) && sameEnd(a, b)
	},
	func(a, b *strictyaml.Node) bool { return overlap(a, b) && review.Ends(a) == review.Ends(b) },
	func(a, b *strictyaml.Node) bool { return overlap(a, b) },
	// The same row for other statuses.
	func(a, b *strictyaml.Node) bool {
		return same(a.Get("when"), b.Get("when")) && same(a.Get("expect"), b.Get("expect")) && review.Ends(a) == review.Ends(b) && sameEnd(a, b)
	},
}

// sameEnd says whether two rows end in the same success or failure.
func sameEnd(a, b *strictyaml.Node) bool {
	return same(a.Get("success"), b.Get("success")) && same(a.Get("failure"), b.Get("failure")) && same(a.Get("capture"), b.Get("capture"))
}

func media(row *strictyaml.Node) string {
	if m := row.Get("media"); m != nil {
		return m.Text
	}
	return "json"
}

// pairRows pairs old rows with new ones and tells what is left of both.
func pairRows(old, new []*strictyaml.Node) (pairs [][2]int, gone, come []int) {
	usedOld, usedNew := map[int]bool{}, map[int]bool{}
	for _, is := range sameness {
		for i, a := range old {
			for j, b := range new {
				if !usedOld[i] && !usedNew[j] && is(a, b) {
					usedOld[i], usedNew[j] = true, true
					pairs = append(pairs, [2]int{i, j})
				}
			}
		}
	}
	for i := range old {
		if !usedOld[i] {
			gone = append(gone, i)
		}
	}
	for j := range new {
		if !usedNew[j] {
			come = append(come, j)
		}
	}
	return pairs, gone, come
}

// row compares two editions of one row.
func (d *differ) row(at string, old, new *strictyaml.Node) {
	if a, b := review.Ends(old), review.Ends(new); a != b {
		d.add("row-end-changed", at, "this answer ends otherwise", a, b)
	}
	d.members(at, old, new, map[string]handler{
		"status":      d.status,
		"exit":        d.status,
		"media":       d.media,
		"when":        d.when,
		"expect":      d.expect,
		"success":     d.picks("success"),
		"display":     d.picks("display"),
		"capture":     d.picks("capture"),
		"failure":     d.failure,
		"not_done":    d.notDone,
		"pending":     d.endWord,
		"took_effect": d.endWord,
	})
}

func (d *differ) status(at string, old, new *strictyaml.Node) {
	before, after := list(old), list(new)
	for _, s := range without(after, before) {
		d.add("row-status-added", at, "this row takes the status "+s+" too", short(old), short(new))
	}
	for _, s := range without(before, after) {
		d.add("row-status-removed", at, "this row takes the status "+s+" no more", short(old), short(new))
	}
}

func (d *differ) media(at string, old, new *strictyaml.Node) {
	word := func(n *strictyaml.Node) string {
		if n == nil {
			return "json"
		}
		return n.Text
	}
	if a, b := word(old), word(new); a != b {
		d.add("row-media", at, "this row reads another kind of body", a, b)
	}
}

func (d *differ) when(at string, old, new *strictyaml.Node) {
	switch {
	case old == nil:
		d.add("row-when-added", at, "this row is chosen only where something holds", "", cut(review.PredicateWords(new)))
	case new == nil:
		d.add("row-when-removed", at, "this row is chosen whatever the body holds", cut(review.PredicateWords(old)), "")
	default:
		d.add("row-when-changed", at, "this row is chosen by something else", cut(review.PredicateWords(old)), cut(review.PredicateWords(new)))
	}
}

// expect compares the shape that a body must have.
func (d *differ) expect(at string, old, new *strictyaml.Node) {
	switch {
	case old == nil:
		d.add("expect-added", at, "the body must have a shape", "", "")
		return
	case new == nil:
		d.add("expect-removed", at, "the body may have any shape", "", "")
		return
	}
	kinds := map[string]string{
		"added": "expect-wider", "removed": "expect-narrower", "required-added": "expect-changed", "required-removed": "expect-changed",
		"now-required": "expect-narrower", "now-optional": "expect-wider",
	}
	for _, f := range compareSchemas(old, new) {
		kind := kinds[f.what]
		if kind == "" {
			kind = "expect-" + f.what
		}
		d.add(kind, at+f.at, f.word("body")+" "+sayings[f.what], f.old, f.new)
	}
}

// picks compares what a row takes out of an answer.
func (d *differ) picks(part string) handler {
	return func(at string, old, new *strictyaml.Node) {
		if part != "display" && (old == nil || new == nil) {
			d.ended(at, old, new)
		}
		for _, name := range keys(old, new) {
			a, b := old.Get(name), new.Get(name)
			there := at + "/" + escape(name)
			switch {
			case a == nil:
				d.add("pick-added", there, part+"."+name+" is picked", "", cut(review.PickWords(b)))
			case b == nil:
				d.add("pick-removed", there, part+"."+name+" is not picked any more", cut(review.PickWords(a)), "")
			case !samePick(a, b):
				d.add("pick-changed", there, part+"."+name+" is picked otherwise", cut(review.PickWords(a)), cut(review.PickWords(b)))
			}
		}
	}
}

// ended tells of a key that comes or goes. Where the row as a whole ends
// otherwise, that was told.
func (d *differ) ended(at string, old, new *strictyaml.Node) {
	d.told = slices.ContainsFunc(d.changes, func(ch Change) bool {
		return ch.Kind == "row-end-changed" && strings.HasPrefix(at, ch.At+"/")
	})
	if !d.told {
		d.add("row-end-changed", at, "this answer ends otherwise", short(old), short(new))
	}
}

// endWord compares pending and took_effect.
func (d *differ) endWord(at string, old, new *strictyaml.Node) { d.ended(at, old, new) }

// failure compares which code a row gives.
func (d *differ) failure(at string, old, new *strictyaml.Node) {
	if old == nil || new == nil {
		d.ended(at, old, new)
		return
	}
	if old.Kind != strictyaml.Mapping || new.Kind != strictyaml.Mapping {
		d.add("failure-changed", at, "this answer fails with another code", short(old), short(new))
		return
	}
	d.members(at, old, new, map[string]handler{
		"at":    d.plain("failure-changed", "the vendor's word for the failure stands elsewhere"),
		"map":   d.failureMap,
		"other": d.failureOther,
	})
}

func (d *differ) failureMap(at string, old, new *strictyaml.Node) {
	for _, word := range keys(old, new) {
		a, b := old.Get(word), new.Get(word)
		there := at + "/" + escape(word)
		switch {
		case a == nil:
			d.add("failure-code-added", there, fmt.Sprintf("the vendor's %q gives a code", word), "", short(b))
		case b == nil:
			d.add("failure-code-removed", there, fmt.Sprintf("the vendor's %q gives no code any more", word), short(a), "")
		case !validate.Equal(a.Value(), b.Value()):
			d.add("failure-changed", there, fmt.Sprintf("the vendor's %q gives another code", word), short(a), short(b))
		}
	}
}

func (d *differ) failureOther(at string, old, new *strictyaml.Node) {
	switch {
	case old == nil:
		d.add("failure-code-added", at, "every other word of the vendor gives a code", "", short(new))
	case new == nil:
		d.add("failure-code-removed", at, "another word of the vendor gives no code any more", short(old), "")
	default:
		d.add("failure-changed", at, "every other word of the vendor gives another code", short(old), short(new))
	}
}

func (d *differ) notDone(at string, old, new *strictyaml.Node) {
	truth := func(n *strictyaml.Node) bool { return n != nil && n.Truth }
	switch a, b := truth(old), truth(new); {
	case b && !a:
		d.add("not-done-added", at, "this answer is taken for proof that nothing was done", "", "")
	case a && !b:
		d.add("not-done-removed", at, "this answer is not taken any more for proof that nothing was done", "", "")
	}
}
