package compare

import (
	"slices"
	"time"

	"chatelaine/internal/actions/review"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

func (d *differ) idempotency(at string, old, new *strictyaml.Node) {
	switch {
	case old == nil:
		d.add("idempotency-added", at, "a repeat is done once", "", short(new))
	case new == nil:
		d.add("idempotency-removed", at, "a repeat is not known to be done once any more", short(old), "")
	case !slices.Equal(ways(old), ways(new)):
		d.add("idempotency-changed", at, "a repeat is done once in another way", short(old), short(new))
	default:
		changed := d.plain("idempotency-changed", "a repeat is done once in another way")
		d.members(at, old, new, map[string]handler{
			"header": changed, "json": changed, "natural": changed,
			"because": d.plain("reason-changed", "another reason is given for being repeatable by nature"),
		})
	}
}

// ways are the keys of idempotency that say how.
func ways(n *strictyaml.Node) []string {
	out := slices.DeleteFunc(n.Keys(), func(k string) bool { return k == "because" })
	slices.Sort(out)
	return out
}

func (d *differ) atMostOnce(at string, old, new *strictyaml.Node) {
	switch {
	case old == nil:
		d.add("at-most-once-added", at, "it is sent at most once", "", short(new))
	case new == nil:
		d.add("at-most-once-removed", at, "it is not sent at most once any more", short(old), "")
	default:
		d.add("reason-changed", at, "another reason is given for sending it at most once", short(old), short(new))
	}
}

// retry compares how often a call may be sent; a contract without retry sends
// it once.
func (d *differ) retry(at string, old, new *strictyaml.Node) {
	switch {
	case old == nil:
		d.add("retry-more", at, "a failed call is sent again", "1", short(new.Get("attempts")))
	case new == nil:
		d.add("retry-less", at, "a failed call is not sent again", short(old.Get("attempts")), "1")
	default:
		d.members(at, old, new, map[string]handler{
			"attempts":   d.attempts,
			"within":     d.longer("retry", "the time in which a call is sent again", time.Duration(0)),
			"codes":      d.retryCodes,
			"rate_limit": d.plain("rate-limit-changed", "the wait between two attempts is told otherwise"),
		})
	}
}

func (d *differ) attempts(at string, old, new *strictyaml.Node) {
	switch validate.Compare(number(new, "1"), number(old, "1")) {
	case 1:
		d.add("retry-more", at, "a call may be sent more often", short(old), short(new))
	case -1:
		d.add("retry-less", at, "a call may be sent less often", short(old), short(new))
	}
}

func (d *differ) retryCodes(at string, old, new *strictyaml.Node) {
	before, after := list(old), list(new)
	for _, code := range without(after, before) {
		d.add("retry-code-added", at, "a call is sent again after "+code, "", code)
	}
	for _, code := range without(before, after) {
		d.add("retry-code-removed", at, "a call is not sent again after "+code, code, "")
	}
}

// checks compares what must hold of an answer. All of them must, in any order.
func (d *differ) checks(at string, old, new *strictyaml.Node) {
	before, after := items(old), items(new)
	usedOld, usedNew := map[int]bool{}, map[int]bool{}
	for _, is := range []func(a, b *strictyaml.Node) bool{sameCheck, sameSubject} {
		for i, a := range before {
			for j, b := range after {
				if usedOld[i] || usedNew[j] || !is(a, b) {
					continue
				}
				usedOld[i], usedNew[j] = true, true
				if !sameCheck(a, b) {
					d.check(at+"/"+itoa(j), a, b)
				}
			}
		}
	}
	for i, a := range before {
		if !usedOld[i] {
			d.add("check-removed", at, "it need not hold any more: "+review.CheckWords(a), cut(review.CheckWords(a)), "")
		}
	}
	for j, b := range after {
		if !usedNew[j] {
			d.add("check-added", at+"/"+itoa(j), "it must hold too: "+review.CheckWords(b), "", cut(review.CheckWords(b)))
		}
	}
}

// sameCheck says whether two checks want the same; the sides of same may be
// written either way round.
func sameCheck(a, b *strictyaml.Node) bool {
	if kind(a) == "same" && kind(b) == "same" {
		x, y := list(a.Get("same")), list(b.Get("same"))
		slices.Sort(x)
		slices.Sort(y)
		return slices.Equal(x, y)
	}
	return same(a, b)
}

func kind(check *strictyaml.Node) string {
	if k := check.Keys(); len(k) == 1 {
		return k[0]
	}
	return ""
}

// subject is what a check looks at.
func subject(check *strictyaml.Node) string {
	k := kind(check)
	v := check.Get(k)
	switch k {
	case "same", "increased":
		sides := list(v)
		for _, s := range sides {
			if len(s) > 7 && s[:7] == "result." {
				return s
			}
		}
	case "fresh", "after_call":
		return short(v.Get("at"))
	case "signed":
		return short(v.Get("jws"))
	}
	return short(v)
}

func sameSubject(a, b *strictyaml.Node) bool { return kind(a) == kind(b) && subject(a) == subject(b) }

// check compares two editions of one check.
func (d *differ) check(at string, old, new *strictyaml.Node) {
	k := kind(new)
	a, b := old.Get(k), new.Get(k)
	move := unmoved
	if k != "fresh" && k != "after_call" {
		move = different
	}
	for _, key := range keys(a, b) {
		if same(a.Get(key), b.Get(key)) {
			continue
		}
		if key != "within" && key != "skew" {
			move = different
			continue
		}
		x, y := duration(a.Get(key), 0), duration(b.Get(key), 0)
		switch {
		case y > x:
			move = move.and(wider)
		case y < x:
			move = move.and(narrower)
		}
	}
	words := map[direction][2]string{
		narrower:  {"check-tightened", "a check takes less"},
		wider:     {"check-loosened", "a check takes more"},
		different: {"check-changed", "a check wants something else"},
	}
	if w, moved := words[move]; moved {
		d.add(w[0], at, w[1]+": "+review.CheckWords(new), cut(review.CheckWords(old)), cut(review.CheckWords(new)))
	}
}
