package validate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/fault"
)

// Reader reads the answers of one step. It is immutable and safe for concurrent
// use. A nil Reader and the zero Reader refuse everything.
type Reader struct {
	name    string
	step    StepKind
	change  bool
	rows    []row
	result  *Schema
	display map[string]DisplayBound
	checks  []check
	host    string
	limits  Limits
}

// row is a compiled row of outcomes.
type row struct {
	name    string
	status  []int
	media   Media
	when    predicate // nil: always
	expect  *Schema   // nil: none
	success picks
	display picks
	capture picks
	failure *failure
	ends    ending
	carries bool // has a capture
	notDone bool
	pending bool // looked at last
	took    bool // took_effect: true
	said    bool // took_effect is written
}

// ending is what a row means.
type ending uint8

const (
	endsNothing ending = iota // capture or pending: the call goes on
	endsSuccess
	endsFailure
)

// emptyObject is the result schema of an action that has nothing to tell.
func emptyObject() any {
	return map[string]any{"type": "object", "additionalProperties": false}
}

// Compile makes a reader of what a contract declares. Every mistake is
// reported at once, each with the row it stands in. It holds what protects the
// boundary; the contract's lint (closed, bounded, no free text) is LintSchema.
func Compile(name string, spec ReaderSpec) (*Reader, error) {
	r := &Reader{
		name: name, step: spec.Step, change: spec.Change, host: spec.Host, limits: spec.Limits,
		display: maps.Clone(spec.Display),
	}
	errs := []error{spec.Step.known()}
	if r.limits == (Limits{}) {
		r.limits = AnswerLimits()
	}
	if spec.Result == nil {
		spec.Result = emptyObject()
	}
	var err error
	if r.result, err = CompileSchema("result", spec.Result); err != nil {
		errs = append(errs, err)
	}
	for _, n := range sortedNames(spec.Display) {
		if b := spec.Display[n]; b.Max < 1 || b.Lines < 1 {
			errs = append(errs, fmt.Errorf("display.%s: max and lines are at least 1", n))
		}
	}
	for i, rs := range spec.Rows {
		if rs.Name == "" {
			rs.Name = fmt.Sprintf("outcomes[%d]", i)
		}
		compiled, err := r.compileRow(rs)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", rs.Name, err))
		}
		r.rows = append(r.rows, compiled)
	}
	if r.checks, err = compileChecks(spec.Checks); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// WithHost returns the same reader for another target's host, which only
// last_segment looks at.
func (r *Reader) WithHost(host string) *Reader {
	if r == nil {
		return nil
	}
	c := *r
	c.host = host
	return &c
}

func (r *Reader) compileRow(s RowSpec) (row, error) {
	out := row{name: s.Name, status: slices.Clone(s.Status), media: s.Media, notDone: s.NotDone, carries: s.HasCapture, pending: s.Pending}
	errs := []error{r.checkRow(s), r.checkEnd(s)}
	keep := func(err error, part string) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part, err))
		}
	}
	var err error
	if s.When != nil {
		out.when, err = compilePredicate(*s.When, 0)
		keep(err, "when")
	}
	if s.Expect != nil {
		out.expect, err = CompileSchema("expect", s.Expect)
		keep(err, "expect")
	}
	out.success, err = compilePicks(s.Success, true, 0)
	keep(err, "success")
	out.display, err = compilePicks(s.Display, false, 0)
	keep(err, "display")
	out.capture, err = compilePicks(s.Capture, false, 0)
	keep(err, "capture")
	if s.TookEffect != nil {
		out.took, out.said = *s.TookEffect, true
		if !out.took && s.Failure == nil {
			s.Failure = &FailureSpec{Code: string(fault.UpstreamUnavailable)}
		}
	}
	switch {
	case s.HasSuccess:
		out.ends = endsSuccess
	case s.Failure != nil:
		out.ends = endsFailure
		out.failure, err = compileFailure(*s.Failure)
		keep(err, "failure")
		errs = append(errs, r.checkCodes(s))
	}
	return out, errors.Join(errs...)
}

// checkRow holds a row to its form.
func (r *Reader) checkRow(s RowSpec) error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(len(s.Status) == 0, "status is missing")
	for i, n := range s.Status {
		bad(n < 200 || n > 599, "status %d is no final HTTP status", n)
		bad(slices.Contains(s.Status[:i], n), "status %d stands twice", n)
		bad(r.vague(n) && s.HasSuccess, "status %d does not tell whether the change happened, so it is no success", n)
	}
	bad(s.Media > MediaNone, "media is json, text or none")
	bad(s.Media == MediaNone && (s.When != nil || s.Expect != nil), "media: none has no body for when or expect")
	bad(!s.HasSuccess && len(s.Success) > 0 || !s.HasCapture && len(s.Capture) > 0, "picks without their keyword")
	bad(len(s.Display) > 0 && !s.HasSuccess, "display stands beside success")
	for _, n := range sortedNames(s.Display) {
		_, declared := r.display[n]
		bad(!declared, "display.%s has no bound under the contract's display", n)
	}
	bad(s.NotDone && s.Failure == nil, "not_done stands beside failure")
	for _, n := range sortedNames(s.Capture) {
		p := s.Capture[n]
		bad(p.Kind == PickHeader && !p.Integer && p.Matches == "", "capture.%s: a value captured from a header needs integer: true or matches", n)
	}
	return errors.Join(errs...)
}

// failure is a compiled failure: a fixed code, or a vendor's code looked up.
type failure struct {
	code  string
	at    Pointer
	by    map[string]string
	other string
}

var codeForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{2,63}$`)

func (s FailureSpec) codes() []string {
	out := append(slices.Sorted(maps.Values(s.Map)), s.Code, s.Other)
	return slices.DeleteFunc(out, func(c string) bool { return c == "" })
}

func compileFailure(s FailureSpec) (*failure, error) {
	if (s.Code == "") == (len(s.Map) == 0) {
		return nil, errors.New("write a code, or at with map")
	}
	if s.Code != "" && (s.At != "" || s.Other != "") {
		return nil, errors.New("a fixed code has no at and no other")
	}
	for _, c := range s.codes() {
		if !codeForm.MatchString(c) {
			return nil, fmt.Errorf("a code matches %s", codeForm)
		}
	}
	at, err := ParsePointer(s.At)
	return &failure{s.Code, at, maps.Clone(s.Map), s.Other}, err
}

// checkCodes holds a row's codes to those that an answer may mean.
func (r *Reader) checkCodes(s RowSpec) error {
	var errs []error
	vague := slices.ContainsFunc(s.Status, r.vague)
	for _, c := range s.Failure.codes() {
		code := fault.Code(c)
		step := r.checkStepCode(code, s)
		switch {
		case fault.Known(code) && !answerCode(code):
			errs = append(errs, fmt.Errorf("failure: no answer of a remote system can mean %s", c))
		case step != nil:
			errs = append(errs, step)
		case vague && code != fault.OutcomeUnknown && !s.NotDone:
			errs = append(errs, fmt.Errorf("failure: after 408 or 5xx a change may have happened; give %s, or not_done: true", fault.OutcomeUnknown))
		}
	}
	return errors.Join(errs...)
}

func answerCode(c fault.Code) bool {
	return c == fault.NotFound || c == fault.OutcomeUnknown || c == fault.UpstreamUnavailable || strings.HasPrefix(string(c), "REMOTE_")
}
