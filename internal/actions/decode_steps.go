package actions

import (
	"net/http"
	"slices"
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

const (
	maxLookups = 8 // a card's facts; each is one send before anybody is asked

	// A poll asks at a pace that no service minds and ends within a day: whoever
	// waits longer looks at the thing itself.
	minPollEvery  = time.Second
	maxPollEvery  = 10 * time.Minute
	maxPollWithin = 24 * time.Hour
)

// lookupKeys are what a lookup has of a step: it sends no body.
var lookupKeys = []string{"method", "path", "query", "headers", "timeout", "outcomes"}

// reservedRoots are the first words of value paths that no lookup and no each
// may take for itself.
var reservedRoots = []string{"input", "target", "call", stepRequest, stepPoll, stepReconcile, "result", "display"}

// steps reads every step in the order in which a call comes to them, so that
// each sees only what is captured before it.
func (d *draft) steps(root *strictyaml.Node) {
	d.captured = map[string]*gathered{}
	d.lookups(root.Get("lookups"))
	poll, reconcile := root.Get("poll"), root.Get("reconcile")
	d.polls = poll != nil
	s := &d.c.request
	s.kind, s.name = StepRequest, stepRequest
	if n := d.f.Require(root, "a contract", "request"); n != nil {
		before := d.f.Count()
		d.oneStep(n, s, nil)
		d.captured[stepRequest] = d.gather(s, d.f.Count() > before)
	}
	if poll != nil {
		d.poll(poll)
	}
	if reconcile != nil {
		d.reconcile(reconcile)
	}
	d.step = nil
}

// lookups reads the named read steps.
func (d *draft) lookups(n *strictyaml.Node) {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "lookups") {
		return
	}
	if len(n.Members) == 0 || len(n.Members) > maxLookups {
		d.bad(n.Pos, "lookup", "take the key away, or name the facts that the request needs", "lookups has one to %d steps", maxLookups)
		return
	}
	for _, m := range n.Members {
		s := &stepSpec{kind: StepLookup, name: m.Key}
		switch {
		case !memberName.MatchString(m.Key):
			d.bad(m.KeyPos, "lookup", "small letters, digits and _", "%q is no name of a lookup", m.Key)
			d.unnamed = true
			continue
		case slices.Contains(reservedRoots, m.Key):
			d.bad(m.KeyPos, "lookup", "choose another name", "%q is the first word of other value paths", m.Key)
			d.unnamed = true
			continue
		}
		before := d.f.Count()
		d.oneStep(m.Value, s, nil)
		d.captured[s.name] = d.gather(s, d.f.Count() > before)
		d.c.lookups = append(d.c.lookups, s)
	}
}

// poll reads the step that is repeated until a named end.
func (d *draft) poll(n *strictyaml.Node) {
	s := &stepSpec{kind: StepPoll, name: stepPoll}
	d.c.poll = s
	if !d.oneStep(n, s, []string{"every", "within"}) {
		return
	}
	if e := d.f.Require(n, stepPoll, "every"); e != nil {
		s.every, _ = d.f.Duration(e, "every", minPollEvery, maxPollEvery)
	}
	if w := d.f.Require(n, stepPoll, "within"); w != nil {
		s.within, _ = d.f.Duration(w, "within", minPollEvery, maxPollWithin)
		if s.within > 0 && s.within < s.every {
			d.bad(w.Pos, "poll", "give it room for two sends and more", "within is shorter than every, so that it would never ask again")
		}
	}
	if g := d.captured[stepRequest]; g != nil && g.rows == 0 && !g.broken {
		d.bad(n.Pos, "poll", "write capture in the row of the request that goes on to the poll; capture: {} takes nothing along", "no row of the request goes on to the poll")
	}
}

// reconcile reads the step that tells whether the request took effect.
func (d *draft) reconcile(n *strictyaml.Node) {
	s := &stepSpec{kind: StepReconcile, name: stepReconcile}
	d.c.reconcile = s
	if d.c.effect == Read {
		d.bad(n.Pos, "once", "take it away", "a contract that reads needs no reconcile")
	}
	d.oneStep(n, s, nil)
}

// allSteps returns every step that the contract has, in the order in which a
// call comes to them.
func (c *Contract) allSteps() []*stepSpec {
	out := slices.Clone(c.lookups)
	out = append(out, &c.request)
	for _, s := range []*stepSpec{c.poll, c.reconcile} {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

// oneStep reads one step over HTTP; more are the keys that its kind has beside
// them.
func (d *draft) oneStep(n *strictyaml.Node, s *stepSpec, more []string) bool {
	what := s.name
	keys := slices.Concat(stepKeys, sshKeys, more)
	if s.kind == StepLookup {
		what, keys = "a lookup", slices.Concat(lookupKeys, sshKeys)
	}
	if argv := n.Get("argv"); argv != nil {
		d.later(argv.Pos, "a step over SSH (argv)")
		return false
	}
	if !d.f.Map(n, what, keys...) {
		return false
	}
	for _, m := range n.Members {
		if slices.Contains(sshKeys, m.Key) {
			d.later(m.KeyPos, "a step over SSH ("+m.Key+")")
		}
	}
	d.step, s.node = s, n
	if s.kind == StepRequest {
		d.requestNode = n
	}
	d.method(n, s)
	d.place = placeSent
	if p := d.f.Require(n, what, "path"); p != nil {
		s.path = d.parsePath(p)
	}
	s.query = d.queryMembers(n.Get("query"))
	s.headers = d.headerMembers(n.Get("headers"))
	d.body(n, s)
	d.place = placeRead
	s.timeout = defaultTimeout
	if t := n.Get("timeout"); t != nil {
		if v, ok := d.f.Duration(t, "timeout", minTimeout, maxTimeout); ok {
			s.timeout = v
		}
	}
	s.free = d.sendsFree(s)
	d.outcomes(d.f.Require(n, what, "outcomes"), s)
	return true
}

// method ties the method to the effect: everything but the request of a change
// reads.
func (d *draft) method(n *strictyaml.Node, s *stepSpec) {
	what := s.name
	if s.kind == StepLookup {
		what = "a lookup"
	}
	m := d.f.Require(n, what, "method")
	word, ok := d.f.Word(m, "method", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	reads := n.Get("reads")
	if reads != nil {
		s.reads = d.sentence(reads, "reads", maxBecause)
	}
	if !ok {
		return
	}
	s.method = word
	if d.c.effect == 0 && s.kind == StepRequest {
		return
	}
	readsOnly := word == http.MethodGet || word == http.MethodHead
	reading := s.kind != StepRequest || d.c.effect == Read
	who := "a contract that reads"
	if s.kind != StepRequest {
		who = stepWords(s)
	}
	switch {
	case s.kind == StepLookup && (reads != nil || word == http.MethodPost):
		d.bad(m.Pos, "effect-method", "use GET or HEAD", "%s runs before anybody is asked, so it cannot read by POST", who)
		return
	case reading && !readsOnly && word == http.MethodPost && s.reads == "" && reads == nil:
		d.bad(m.Pos, "effect-method", "for a POST that only reads give reads: \"why\""+changeHint(s), "%s cannot use %s", who, word)
	case reading && !readsOnly && word != http.MethodPost:
		d.bad(m.Pos, "effect-method", "use GET or HEAD"+changeHint(s), "%s cannot use %s", who, word)
	case !reading && readsOnly:
		d.bad(m.Pos, "effect-method", "write effect: read, or use the method that changes", "a contract that changes something cannot use %s", word)
	case !reading && word == http.MethodDelete && d.c.effect != Destroy:
		d.bad(m.Pos, "effect-method", "write effect: destroy", "a DELETE request destroys")
	}
	if reads != nil && (!reading || readsOnly) {
		d.bad(reads.Pos, "effect-method", "", "reads stands only beside a POST that reads")
	}
}

// changeHint names the other way out, which only the request has.
func changeHint(s *stepSpec) string {
	if s.kind == StepRequest {
		return ", or write effect: change"
	}
	return ""
}

// readerKinds translate a kind of step for the package that reads answers.
var readerKinds = map[StepKind]validate.StepKind{
	StepLookup: validate.StepLookup, StepRequest: validate.StepRequest, StepPoll: validate.StepPoll, StepReconcile: validate.StepReconcile,
}
