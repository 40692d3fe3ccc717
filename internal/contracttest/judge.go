package contracttest

import (
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/validate"
)

// ruling is what became of one near-miss.
type ruling uint8

const (
	ruledHole    ruling = iota
	ruledRefused        // no answer: the contract says that this is nothing it knows
	ruledFailed         // another end that the contract declares, never a success
	ruledSame           // the very same answer, and the author opened the place
	ruledAllowed        // another answer that the author wrote out
)

// finding is a ruling with its reason; of a hole also the way out.
type finding struct {
	ruling ruling
	why    string
	wayOut string
}

// holds makes a finding that is no hole where ok, else one with the way out.
func holds(ok bool, good ruling, why, wayOut string) finding {
	if ok {
		return finding{ruling: good}
	}
	return finding{why: why, wayOut: wayOut}
}

// verdict is how a reader took one answer.
type verdict struct {
	proved    *validate.Proved
	rejection *validate.Rejection
}

// kind is what an end means for the call: refused, success, goes on (a capture
// or a took_effect without success), pending, failure or missed.
func (v verdict) kind() string {
	if v.rejection != nil {
		return "refused"
	}
	if v.proved.OK() {
		return "success"
	}
	if v.proved.Pending() {
		return "pending"
	}
	if effect, said := v.proved.TookEffect(); said {
		if effect {
			return "took effect"
		}
		return "did not take effect"
	}
	if code, _ := v.proved.Failure(); code != "" {
		if v.proved.Missed() {
			return "missed"
		}
		return "failure"
	}
	return "goes on"
}

// accepts says whether an end is an answer that something is built on.
func accepts(kind string) bool {
	return kind == "success" || kind == "goes on" || kind == "took effect" || kind == "did not take effect"
}

// values are what leaves the answer.
func (v verdict) values() any {
	captured, _ := v.proved.Captured()
	code, _ := v.proved.Failure()
	return map[string]any{"data": asAny(v.proved.Data()), "captured": asAny(captured), "code": code, "kind": v.kind()}
}

func (v verdict) same(o verdict) bool {
	a, _, err := plain(v.values())
	b, _, err2 := plain(o.values())
	c, _, err3 := plain(texts(v.proved.Display()))
	d, _, err4 := plain(texts(o.proved.Display()))
	return err == nil && err2 == nil && err3 == nil && err4 == nil && validate.Equal(a, b) && validate.Equal(c, d)
}

// sameEvidence leaves the texts for people out.
func (v verdict) sameEvidence(o verdict) bool {
	a, _, err := plain(v.values())
	b, _, err2 := plain(o.values())
	return err == nil && err2 == nil && validate.Equal(a, b)
}

func asAny(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// judge applies the rule of docs/contract-testing.md to one near-miss of an
// accepted answer: base is how the answer itself was taken, got how the
// near-miss was.
func (b *breeder) judge(m mutant, base, got verdict) finding {
	kind := got.kind()
	if kind == "refused" {
		return finding{ruling: ruledRefused}
	}
	row := b.out.rows[got.proved.Row()]
	switch {
	case kind == "pending", kind == "failure" && (row == nil || got.proved.Row() != base.proved.Row()):
		return finding{ruling: ruledFailed}
	case row == nil:
		return finding{ruling: ruledFailed} // a built-in row never succeeds
	}
	if row != b.row {
		m.said = saidOf(row.expect, m.path)
	}
	if kind == "failure" && accepts(base.kind()) {
		kind = "missed" // the row that took the answer now fails: a find met nothing
	}
	j := judging{breeder: b, m: m, row: row, base: base, got: got, kind: kind}
	if row.expect == nil && len(m.path) > 0 && m.kind != kindHeader && m.kind != kindSubject && m.kind != kindOld && m.kind != kindFuture {
		return finding{why: "the row has no expect, so any document is taken", wayOut: "write expect for " + row.name + "; with additionalProperties: true where members may be added"}
	}
	switch m.kind {
	case kindExtra, kindError:
		return j.extra()
	case kindRemoved:
		return j.removed()
	case kindNull, kindType, kindNumber, kindText:
		return j.typed()
	case kindEmpty:
		return j.empty()
	case kindOversized:
		return j.oversized()
	case kindListed:
		return j.listed()
	case kindUnlisted:
		return j.unlisted()
	case kindSubject:
		return j.subject()
	case kindOld, kindFuture:
		return holds(!accepts(kind), ruledFailed, "a time that the check does not allow was taken", "pick the time from this member in every row, and let the check look at that member")
	case kindHeader:
		return j.header()
	}
	// Bytes that are no document of the declared kind are never an answer,
	// unless another row of the status reads them.
	return holds(row != b.row, ruledAllowed, "bytes that are not what the row reads were taken", "let the row's media say what it reads")
}

// judging is one near-miss that some row took.
type judging struct {
	*breeder
	m         mutant
	row       *rowText
	base, got verdict
	kind      string
}

// extra: an object takes one more member only where it was opened in so many
// words, and nothing changes by it.
func (j judging) extra() finding {
	parent := saidOf(j.row.expect, j.m.path[:len(j.m.path)-1])
	same := j.got.same(j.base)
	switch {
	case j.m.kind == kindError && j.m.said.named() && same:
		return finding{why: "an error beside the data was taken, and nobody looks", wayOut: "take the member out of expect of " + j.row.name + ", or read it in when"}
	case !parent.takesMore() && !j.m.said.named():
		return finding{why: "a member that nobody named was taken", wayOut: "write type: object and additionalProperties: false for the object in expect of " + j.row.name}
	case !same:
		return finding{why: "a member that nobody named changes the answer", wayOut: "close the object in expect, or name the member there"}
	}
	return finding{ruling: ruledSame}
}

// removed: a member may be absent where expect names it without requiring it or
// the object is open, and every read of it says what its absence means.
func (j judging) removed() finding {
	reads := j.readsOf(j.m.path)
	for _, r := range reads {
		if (r.part == "when" || r.find) && !r.shape && !j.handled(r) {
			return finding{why: "without the member " + j.outcomeWords() + ", though `" + readWords(r) + "` looks at it", wayOut: "require the member in expect of " + j.row.name + ", or test it with exists beside"}
		}
	}
	if j.kind == "missed" {
		return finding{why: "without a member the answer reads NOT_FOUND", wayOut: "require the member in expect of " + j.row.name}
	}
	if !j.m.said.named() && !j.m.said.open {
		return finding{why: "a member that nobody wrote about may be absent", wayOut: "name it in expect of " + j.row.name}
	}
	if j.got.same(j.base) {
		return finding{ruling: ruledSame}
	}
	return holds(j.optional(reads), ruledAllowed, "without the member the answer says something else", "require the member in expect of "+j.row.name)
}

// handled says that the author thought of the member's absence: the predicate
// asks whether it is there, says what stands for nothing, or has another way to
// be true.
func (j judging) handled(r readPlace) bool {
	return r.absent || r.either || slices.ContainsFunc(j.row.reads, func(o readPlace) bool {
		return o.shape && o.part == r.part && o.find == r.find && o.covers(j.m.path)
	})
}

// optional says that every pick of the place says that it may be absent.
func (j judging) optional(reads []readPlace) bool {
	for _, r := range reads {
		if r.pick == nil || r.find {
			continue
		}
		if !saysYes(r.pick, "optional") && r.each == nil {
			return false
		}
	}
	return true
}

// typed: a value of another type is taken only where expect lists the type, or
// where nobody looks and the object was opened.
func (j judging) typed() finding {
	value, _ := at(j.parsed(), j.m.path)
	reads := j.readsOf(j.m.path)
	switch {
	case j.m.said.named() && j.m.said.takes(value):
		return finding{ruling: ruledAllowed}
	case j.m.said.named():
		return finding{why: "expect names the place without its type", wayOut: "write type in expect of " + j.row.name}
	case j.m.said.unsaid():
		return finding{why: "a value of any type is taken where nobody wrote about it", wayOut: "write the place out in expect of " + j.row.name}
	case j.kind == "missed":
		return finding{why: "with such a value the answer reads NOT_FOUND", wayOut: "name the member with its type in expect of " + j.row.name}
	case j.got.same(j.base) && !slices.ContainsFunc(reads, func(r readPlace) bool { return !r.shape }):
		return finding{ruling: ruledSame}
	case value == nil && len(reads) > 0 && j.nullable(reads):
		return finding{ruling: ruledAllowed}
	}
	return finding{why: "a value of another type was read", wayOut: "name the member with its type in expect of " + j.row.name}
}

// nullable says that every read is a pick that says what null means.
func (j judging) nullable(reads []readPlace) bool {
	return !slices.ContainsFunc(reads, func(r readPlace) bool {
		return r.pick == nil || r.find || !saysYes(r.pick, "optional") && r.pick.Get("null") == nil
	})
}

// empty: empty text is no fact. It may stand where nobody takes it out, or
// where an enum lists it or minLength: 0 allows it in so many words.
func (j judging) empty() finding {
	least, written := j.m.said.number("minLength")
	ok := !accepts(j.kind) || j.got.sameEvidence(j.base) || j.m.said.lists("") || written && least == 0 || j.translated()
	return holds(ok, ruledAllowed, "empty text was taken for a fact", "write minLength: 1 in expect of "+j.row.name+", or a pattern in result that wants a character")
}

// oversized: long text may reach people, cut; it is never a fact.
func (j judging) oversized() finding {
	return holds(!accepts(j.kind) || j.got.sameEvidence(j.base), ruledAllowed,
		"text beyond every bound was taken for a fact", "write maxLength in expect of "+j.row.name+" and in result")
}

// verdictMembers are names under which an answer says of itself whether it
// worked.
var verdictMembers = regexp.MustCompile(`(?i)^(is_?)?(ok|success|successful|succeeded|error|errors|failed|failure)$`)

// listed: another value of an enum is another answer that the result allows;
// but what an answer says about its own success must be looked at.
func (j judging) listed() finding {
	last := ""
	if len(j.m.path) > 0 {
		last = j.m.path[len(j.m.path)-1]
	}
	if verdictMembers.MatchString(last) && accepts(j.kind) && j.got.same(j.base) {
		return finding{why: "the answer says of itself whether it worked, and nobody looks", wayOut: "write const in expect of " + j.row.name + ", or read the member in when"}
	}
	if j.m.said.unsaid() {
		return finding{why: "a value of any kind is taken where nobody wrote about it", wayOut: "write the place out in expect of " + j.row.name}
	}
	return finding{ruling: ruledAllowed}
}

// unlisted: a value that no list has is translated only where the pick has an
// other.
func (j judging) unlisted() finding {
	ok := !accepts(j.kind) || j.got.sameEvidence(j.base)
	for _, r := range j.readsOf(j.m.path) {
		ok = ok || r.pick.Get("other") != nil
	}
	return holds(ok, ruledAllowed, "a word that no list has was taken", "list the words in expect of "+j.row.name+" or under map")
}

// subject: an answer about another thing is no answer.
func (j judging) subject() finding {
	if !accepts(j.kind) {
		return finding{ruling: ruledFailed}
	}
	wayOut := "compare the member in when of " + j.row.name
	for _, r := range j.row.reads {
		if r.part == "success" && slices.Equal(r.path, j.m.path) {
			wayOut = "write a check: same: [result." + r.name + ", …], or compare it in when"
		}
	}
	return finding{why: "the answer is about another thing than was asked about", wayOut: wayOut}
}

// header: a picked header stands exactly once.
func (j judging) header() finding {
	optional := false
	for _, part := range []string{"success", "display", "capture"} {
		for _, p := range j.row.picks(part) {
			if h := p.Value.Get("header"); h != nil && strings.EqualFold(h.Text, j.m.path[0]) {
				optional = optional || saysYes(p.Value, "optional")
			}
		}
	}
	ok := !accepts(j.kind) || j.m.value == "gone" && optional || j.m.value != "twice" && j.got.same(j.base)
	return holds(ok, ruledAllowed, "a header that is "+j.m.value+" was taken", "bound the pick with integer: true or matches, and the result with a pattern")
}

// parsed is the near-miss as a document.
func (j judging) parsed() any {
	doc, err := validate.Parse(j.m.raw.Body, validate.AnswerLimits())
	if err != nil {
		return nil
	}
	return doc
}

// readsOf gives the row's reads of a place, of what is in it and of what holds
// it.
func (j judging) readsOf(path []string) []readPlace {
	var out []readPlace
	for _, r := range j.row.reads {
		if r.covers(path) {
			out = append(out, r)
		}
	}
	return out
}

// translated says that every pick of the place goes through a map.
func (j judging) translated() bool {
	found := false
	for _, r := range j.readsOf(j.m.path) {
		if r.part != "success" && r.part != "capture" || r.find {
			continue
		}
		if r.pick.Get("map") == nil {
			return false
		}
		found = true
	}
	return found
}

// outcomeWords say what came of a near-miss.
func (j judging) outcomeWords() string {
	switch j.kind {
	case "missed":
		return "the answer reads NOT_FOUND"
	case "failure":
		return "the row still fails"
	}
	return "the row still matches"
}

func readWords(r readPlace) string {
	if r.find {
		return "find"
	}
	return r.part
}
