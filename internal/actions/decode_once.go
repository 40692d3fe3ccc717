package actions

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// idempotency says how a repeated request is done once.
type idempotency struct {
	header  string   // canonical name
	json    []string // where the key goes in the body
	natural bool
}

func (i idempotency) declared() bool { return i.header != "" || i.json != nil || i.natural }

const (
	maxAttempts    = 10
	maxRetryWithin = 10 * time.Minute
)

// ownCodes reads failures.
func (d *draft) ownCodes(n *strictyaml.Node) {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "failures") {
		return
	}
	if len(n.Members) > maxFailures {
		d.bad(n.Pos, "failures", "", "more than %d codes", maxFailures)
		return
	}
	for _, m := range n.Members {
		switch {
		case fault.Known(fault.Code(m.Key)):
			d.bad(m.KeyPos, "failures", "choose another name, or give the API's code in the row itself", "%s is a code of the API", m.Key)
		case !codeName.MatchString(m.Key):
			d.bad(m.KeyPos, "failures", "capital letters, digits and _", "%q is no code", m.Key)
		case strings.HasPrefix(m.Key, "REMOTE_"):
			d.bad(m.KeyPos, "failures", "", "codes that begin with REMOTE_ belong to the API")
		}
		if !d.f.Map(m.Value, "a code", "message", "retryable") {
			continue
		}
		own := OwnCode{Code: m.Key}
		own.Message = d.sentence(d.f.Require(m.Value, "a code", "message"), "message", maxMessage)
		if r := d.f.Require(m.Value, "a code", "retryable"); r != nil {
			own.Retryable, _ = d.f.Flag(r, "retryable")
		}
		d.c.failures = append(d.c.failures, own)
	}
	slices.SortFunc(d.c.failures, func(a, b OwnCode) int { return strings.Compare(a.Code, b.Code) })
}

// once reads everything under "Doing it once" and holds a change to one answer.
func (d *draft) once(root *strictyaml.Node) {
	if n := root.Get("at_most_once"); n != nil {
		d.c.atMostOnce = d.sentence(n, "at_most_once", maxBecause)
	}
	d.idempotent(root.Get("idempotency"))
	d.retries(root.Get("retry"))
	if d.c.effect != Change && d.c.effect != Destroy {
		for _, key := range []string{"idempotency", "at_most_once"} {
			if n := root.Get(key); n != nil && d.c.effect == Read {
				d.bad(n.Pos, "once", "", "a contract that reads needs no %s", key)
			}
		}
		return
	}
	later := root.Get("reconcile") != nil || root.Get("confirm") != nil
	broken := slices.ContainsFunc(root.Broken(), func(k string) bool {
		return slices.Contains([]string{"idempotency", "at_most_once", "reconcile", "confirm"}, k)
	})
	if root.Get("idempotency") == nil && root.Get("at_most_once") == nil && !later && !broken {
		d.bad(root.Pos, "once", "write idempotency, reconcile, or at_most_once: \"why\"", "a contract that changes something must say how it is done once")
	}
}

func (d *draft) idempotent(n *strictyaml.Node) {
	if n == nil || !d.f.Map(n, "idempotency", "header", "json", "natural", "because") {
		return
	}
	ways := slices.DeleteFunc(n.Keys(), func(k string) bool { return k != "header" && k != "json" && k != "natural" })
	if len(ways) != 1 {
		d.bad(n.Pos, "idempotency", "", "idempotency has exactly one of header, json and natural")
		return
	}
	v := n.Get(ways[0])
	switch ways[0] {
	case "header":
		d.idempotencyHeader(v)
	case "json":
		d.idempotencyMember(v)
	case "natural":
		d.natural(n, v)
	}
}

func (d *draft) idempotencyHeader(v *strictyaml.Node) {
	name, ok := d.f.Text(v, "header")
	if !ok {
		return
	}
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name) || refusedHeader(name) || slices.Contains(headerAllowList, canonical):
		d.bad(v.Pos, "idempotency", "such as Idempotency-Key", "%q cannot carry the idempotency key", name)
	case slices.ContainsFunc(d.c.request.headers, func(m valueMember) bool { return m.name == canonical }):
		d.bad(v.Pos, "idempotency", "take it out of request.headers", "the daemon writes the header %s", canonical)
	}
	d.c.idem.header = canonical
}

func (d *draft) idempotencyMember(v *strictyaml.Node) {
	ptr, ok := d.pointer(v)
	if !ok {
		return
	}
	if ptr == "" || strings.HasSuffix(ptr, "/") {
		d.bad(v.Pos, "idempotency", "such as /client_token", "the pointer names no member")
		return
	}
	var tokens []string
	for _, t := range strings.Split(ptr[1:], "/") {
		tokens = append(tokens, unescapePointer.Replace(t))
	}
	body := d.c.request.body
	if d.c.request.node != nil && (d.c.request.bodyKind != bodyJSON || body != nil && body.op != opObject) {
		d.bad(v.Pos, "idempotency", "", "the key needs a JSON body that is an object")
		return
	}
	for i, t := range tokens {
		if body == nil {
			break
		}
		next := member(body, t)
		last := i == len(tokens)-1
		if next != nil && (last || next.op != opObject) {
			d.bad(v.Pos, "idempotency", "take it out of the body", "the daemon writes the member %s", ptr)
			return
		}
		body = next
	}
	d.c.idem.json = tokens
}

func member(v *valueNode, name string) *valueNode {
	for _, m := range v.members {
		if m.name == name {
			return m.node
		}
	}
	return nil
}

func (d *draft) natural(n, v *strictyaml.Node) {
	d.c.idem.natural, _ = d.f.Flag(v, "natural")
	if !d.c.idem.natural {
		d.bad(v.Pos, "idempotency", "take it away", "natural: false says nothing")
	}
	if b := n.Get("because"); b != nil {
		d.sentence(b, "because", maxBecause)
	} else if m := d.c.request.method; m == http.MethodPost || m == http.MethodPatch {
		d.bad(v.Pos, "idempotency", "write because: why a repeat has the same effect and the same answer", "a %s that is repeatable by nature needs a reason", m)
	}
}

func (d *draft) retries(n *strictyaml.Node) {
	d.c.retry = RetryPolicy{Attempts: 1}
	if n == nil || !d.f.Map(n, "retry", "attempts", "within", "codes", "rate_limit") {
		return
	}
	r := &d.c.retry
	if v, ok := d.f.Whole(d.f.Require(n, "retry", "attempts"), "attempts", 2, maxAttempts); ok {
		r.Attempts = int(v)
	}
	if w := d.f.Require(n, "retry", "within"); w != nil {
		r.Within, _ = d.f.Duration(w, "within", time.Second, maxRetryWithin)
	}
	r.Codes = map[fault.Code]bool{}
	if c := d.f.Require(n, "retry", "codes"); c != nil {
		d.retryCodes(c, r)
	}
	if d.c.effect != Read && d.c.effect != 0 && !d.c.idem.declared() {
		d.bad(n.Pos, "retry", "declare idempotency, or take retry away", "a change is retried only with idempotency")
	}
	d.rateLimit(n.Get("rate_limit"), r)
}

func (d *draft) retryCodes(n *strictyaml.Node, r *RetryPolicy) {
	allowed := []string{string(fault.UpstreamUnavailable), string(fault.RemoteRateLimited)}
	if d.c.effect == Read {
		allowed = append(allowed, string(fault.InvalidResponse))
	} else {
		allowed = append(allowed, string(fault.OutcomeUnknown))
	}
	codes := d.f.List(n, "codes")
	if n.Kind == strictyaml.Sequence && len(codes) == 0 {
		d.bad(n.Pos, "retry", "", "codes is empty")
	}
	for _, it := range codes {
		if w, ok := d.f.Word(it, "a code of retry", allowed...); ok {
			r.Codes[fault.Code(w)] = true
		}
	}
}

func (d *draft) rateLimit(n *strictyaml.Node, r *RetryPolicy) {
	if n == nil || !d.f.Map(n, "rate_limit", "header", "unit") {
		return
	}
	if h := d.f.Require(n, "rate_limit", "header"); h != nil {
		name, ok := d.f.Text(h, "header")
		if ok && !httpguts.ValidHeaderFieldName(name) {
			d.bad(h.Pos, "header", "", "%q is no name of a header", name)
		}
		r.RateLimitHeader = http.CanonicalHeaderKey(name)
	}
	if u := d.f.Require(n, "rate_limit", "unit"); u != nil {
		r.RateLimitUnit, _ = d.f.Word(u, "unit", "seconds", "millis", "unix_seconds", "unix_millis", "http_date")
	}
}

var checkKinds = []string{"same", "fresh", "after_call", "increased", "signed"}

const (
	maxFresh = 366 * 24 * time.Hour
	maxSkew  = 10 * time.Minute
)

// semanticChecks reads checks.
func (d *draft) semanticChecks(n *strictyaml.Node) {
	if n == nil {
		return
	}
	for _, it := range d.f.List(n, "checks") {
		if !d.f.Is(it, strictyaml.Mapping, "a check") {
			continue
		}
		if len(it.Members) != 1 {
			d.bad(it.Pos, "check", "", "a check has exactly one key")
			continue
		}
		m := it.Members[0]
		switch {
		case m.Key == "signed":
			d.signedCheck(m)
		case m.Key == "same" || m.Key == "increased":
			d.pairCheck(m)
		case m.Key == "fresh" || m.Key == "after_call":
			d.timeCheck(m)
		default:
			d.bad(m.KeyPos, "unknown-key", strictyaml.DidYouMean(m.Key, checkKinds), "there is no check %q", m.Key)
		}
	}
}

func (d *draft) pairCheck(m strictyaml.Member) {
	items, ok := d.tuple(m.Value, m.Key, 2)
	if !ok {
		return
	}
	want := kindAny
	if m.Key == "increased" {
		want = kindNumber
	}
	left, a := d.checkPath(items[0], want)
	right, b := d.checkPath(items[1], want)
	if a && b && !strings.HasPrefix(left, "result.") && !strings.HasPrefix(right, "result.") {
		d.bad(m.KeyPos, "check", "", "neither side is a member of the result")
		return
	}
	if a && b {
		d.c.checks = append(d.c.checks, validate.CheckSpec{Kind: m.Key, Left: left, Right: right})
	}
}

// checkPath reads a path that may also begin with result.
func (d *draft) checkPath(n *strictyaml.Node, want kind) (string, bool) {
	path, ok := d.f.Text(n, "a path")
	if !ok {
		return "", false
	}
	rest, result := strings.CutPrefix(path, "result.")
	if !result {
		return path, d.scopePath(n.Pos, path, want)
	}
	if d.c.resultDoc == nil {
		return path, false
	}
	s, _, names := d.resultView.property(d.c.resultDoc, rest)
	if s == nil {
		d.bad(n.Pos, "value-path", strictyaml.DidYouMean(rest[strings.LastIndex(rest, ".")+1:], names), "there is no value %q", path)
		return path, false
	}
	return path, d.wants(n.Pos, schemaKind(s), want)
}

func (d *draft) timeCheck(m strictyaml.Member) {
	keys := []string{"at", "within", "skew"}
	if m.Key == "after_call" {
		keys = []string{"at", "skew"}
	}
	if !d.f.Map(m.Value, m.Key, keys...) {
		return
	}
	c := validate.CheckSpec{Kind: m.Key}
	at := d.f.Require(m.Value, m.Key, "at")
	ok := at != nil
	if ok {
		c.At, ok = d.checkPath(at, kindText)
		if ok && !strings.HasPrefix(c.At, "result.") {
			d.bad(at.Pos, "check", "", "%s looks at a member of the result", m.Key)
			ok = false
		}
		ok = ok && d.isResultTime(at, m.Key)
	}
	if m.Key == "fresh" {
		w, good := d.f.Duration(d.f.Require(m.Value, m.Key, "within"), "within", time.Second, maxFresh)
		c.Within, ok = w, ok && good
	}
	if s := m.Value.Get("skew"); s != nil {
		v, good := d.f.Duration(s, "skew", 0, maxSkew)
		c.Skew, ok = v, ok && good
	}
	if ok {
		d.c.checks = append(d.c.checks, c)
	}
}

// setAside reads exceptions: lint rules set aside on purpose.
func (d *draft) setAside(n *strictyaml.Node) {
	if n == nil {
		return
	}
	rules := exceptionRules()
	for _, it := range d.f.List(n, "exceptions") {
		if !d.f.Map(it, "an exception", "rule", "because") {
			continue
		}
		r := d.f.Require(it, "an exception", "rule")
		rule, ok := d.f.Text(r, "rule")
		if ok && !slices.Contains(rules, rule) {
			d.bad(r.Pos, "exception", exceptionHint(rule, rules), "%q is no rule that can be set aside", rule)
		}
		if slices.ContainsFunc(d.c.exceptions, func(e exception) bool { return e.rule == rule }) {
			d.bad(r.Pos, "exception", "keep one of the two", "the rule %s is set aside twice", rule)
		}
		because := d.sentence(d.f.Require(it, "an exception", "because"), "because", maxBecause)
		d.c.exceptions = append(d.c.exceptions, exception{rule, because})
	}
}

// exceptionHint says why a rule cannot be set aside, or which was meant.
func exceptionHint(rule string, rules []string) string {
	if r, ok := RuleByID(rule); ok && r.Decider != ByLint {
		return "what is refused when a contract is loaded cannot be set aside; mend it"
	}
	if hint := strictyaml.DidYouMean(rule, rules); hint != "" {
		return hint
	}
	return "see docs/lint.md for those that can"
}
