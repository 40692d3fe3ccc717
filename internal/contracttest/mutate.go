package contracttest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// provedAnswer is one answer of a fixture as the reader met it: all that is
// needed to let the same reader judge another one in its place.
type provedAnswer struct {
	step   string
	reader *validate.Reader
	scope  validate.Scope
	now    time.Time
	raw    validate.Raw
	known  []string          // texts that belong to the call: inputs, constants, earlier answers
	named  map[string]string // those of them that have a name at the top: inputs and constants
	verdict
}

// Hole is a near-miss that a contract took though nothing in it says so.
type Hole struct {
	Action   string `json:"action"`
	Fixture  string `json:"fixture"`
	File     string `json:"file"`
	Contract string `json:"contract"` // path of contract.yaml
	Line     int    `json:"line"`     // of the row in contract.yaml
	Step     string `json:"step"`
	Row      string `json:"row"`
	Kind     string `json:"kind"`
	Place    string `json:"place"` // a pointer into the answer, or a header's name
	Value    string `json:"value"` // what stood there
	Why      string `json:"why"`
	WayOut   string `json:"way_out"`
}

// Mutation is what the near-misses of one contract's accepted answers led to.
type Mutation struct {
	Action  string `json:"action"`
	Answers int    `json:"answers"` // accepted answers that were changed
	Made    int    `json:"made"`
	Refused int    `json:"refused"`          // INVALID_RESPONSE
	Failed  int    `json:"failed"`           // another declared end, no success
	Same    int    `json:"same"`             // the same answer, in a place that was opened
	Allowed int    `json:"allowed"`          // another answer that the author wrote out
	Capped  bool   `json:"capped,omitempty"` // an answer was too large to try all
	Holes   []Hole `json:"holes"`
}

// shownValue is how much of a changed value a hole repeats.
const shownValue = 120

// mutateAll makes the near-misses of what was played. Fixtures of old shapes
// count as any other: their answers are accepted too.
func (p player) mutateAll(ctx context.Context, played []played, workers int) ([]Mutation, error) {
	results := make([]Mutation, len(played))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel(workers))
	met := map[[sha256.Size]byte]bool{}
	for i, pl := range played {
		again := metBefore(met, pl)
		group.Go(func() error {
			results[i] = mutateOne(ctx, p.outlines[pl.fx.action], pl, again)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return merge(results), nil
}

// merge adds up by action. A hole that several fixtures show is told once.
func merge(results []Mutation) []Mutation {
	var out []Mutation
	seen := map[string]bool{}
	for _, r := range results {
		if len(out) == 0 || out[len(out)-1].Action != r.Action {
			out = append(out, Mutation{Action: r.Action, Holes: []Hole{}})
		}
		m := &out[len(out)-1]
		m.Answers, m.Made, m.Refused, m.Failed = m.Answers+r.Answers, m.Made+r.Made, m.Refused+r.Refused, m.Failed+r.Failed
		m.Same, m.Allowed, m.Capped = m.Same+r.Same, m.Allowed+r.Allowed, m.Capped || r.Capped
		for _, h := range r.Holes {
			key := strings.Join([]string{h.Action, h.Row, h.Kind, indexless(h.Place), h.Why, h.WayOut}, "\x00")
			if h.Place == "" || !seen[key] {
				m.Holes = append(m.Holes, h)
			}
			seen[key] = true
		}
	}
	return out
}

var indices = regexp.MustCompile(`/[0-9]+`)

func indexless(place string) string { return indices.ReplaceAllString(place, "/*") }

// mutateOne changes every accepted answer of one fixture that played as it says.
// An answer that was met again makes no near-misses.
func mutateOne(ctx context.Context, o *outline, pl played, again []bool) Mutation {
	out := Mutation{Action: pl.fx.action}
	if !pl.ok {
		return out // what it accepts is not settled
	}
	for i, a := range pl.trace {
		if a.rejection != nil || o.rows[a.proved.Row()] == nil || ctx.Err() != nil {
			continue
		}
		if again[i] {
			continue // its near-misses are the same
		}
		b := &breeder{base: a, row: o.rows[a.proved.Row()], out: o}
		if b.doc, b.media = a.document(b.row); b.media == validate.MediaJSON && b.doc == nil && len(a.raw.Body) == 0 {
			continue
		}
		b.try(&out, pl.fx)
	}
	return out
}

// document reads the body as the row does.
func (a provedAnswer) document(row *rowText) (any, validate.Media) {
	if m := row.node.Get("media"); m != nil && m.Text != "json" {
		if m.Text == "text" {
			return string(a.raw.Body), validate.MediaText
		}
		return nil, validate.MediaNone
	}
	doc, _ := validate.Parse(a.raw.Body, validate.AnswerLimits())
	return doc, validate.MediaJSON
}

// try proves every near-miss of one answer. Those of an answer that fails, or
// that says that the end has not come, may only not become a success.
func (b *breeder) try(out *Mutation, fx fixture) {
	b.breed()
	strict := accepts(b.base.kind())
	if strict {
		out.Answers++
	}
	out.Capped = out.Capped || b.capped
	for _, m := range b.made {
		proved, rejection := b.base.reader.Prove(m.raw, b.base.scope, b.base.now)
		got := verdict{proved, rejection}
		f := finding{ruling: ruledFailed}
		switch {
		case strict:
			f = b.judge(m, b.base.verdict, got)
		case got.kind() == "refused":
			f.ruling = ruledRefused
		case accepts(got.kind()) && !writtenOut(m.kind):
			f = finding{why: "spoiled, a failure became a success", wayOut: "let expect and when of " + proved.Row() + " name what a success has"}
		}
		out.count(f, func() Hole { return b.hole(m, f, fx) })
	}
}

// writtenOut names the kinds that may turn a failure into a success: another
// word that the contract lists is another answer.
func writtenOut(kind string) bool {
	return kind == kindListed || kind == kindUnlisted || kind == kindRemoved || kind == kindSubject
}

func (m *Mutation) count(f finding, hole func() Hole) {
	m.Made++
	switch f.ruling {
	case ruledRefused:
		m.Refused++
	case ruledFailed:
		m.Failed++
	case ruledSame:
		m.Same++
	case ruledAllowed:
		m.Allowed++
	default:
		m.Holes = append(m.Holes, hole())
	}
}

func (b *breeder) hole(m mutant, f finding, fx fixture) Hole {
	value := m.value
	if len(value) > shownValue {
		value = strings.ToValidUTF8(value[:shownValue], "") + "…"
	}
	place := pointerOf(m.path)
	if m.kind == kindHeader {
		place = strings.Join(m.path, "")
	}
	return Hole{
		Action: fx.action, Fixture: fx.name, File: fx.file, Contract: b.out.file, Line: b.row.node.Pos.Line,
		Step: b.base.step, Row: b.row.name, Kind: m.kind, Place: place, Value: value, Why: f.why, WayOut: f.wayOut,
	}
}

// knownTexts are the texts of a call that an answer may repeat: its inputs, the
// operator's constants of its route, the daemon's own values, and the earlier
// answers that the contract names.
func knownTexts(o *outline, c *actions.Contract, input any, scope validate.Scope) (known []string, named map[string]string) {
	named = map[string]string{}
	add := func(v any) {
		walkTexts(v, func(s string) { known = append(known, s) })
	}
	for _, k := range c.RouteCases() {
		for name := range k.With {
			if v, ok := scope("target." + name); ok {
				add(v)
				nameTexts(named, map[string]any{name: v})
			}
		}
	}
	add(input)
	nameTexts(named, input)
	for _, path := range o.mentioned {
		if v, ok := scope(path); ok {
			add(v)
		}
	}
	slices.Sort(known)
	return slices.Compact(known), named
}

// mentioned are the value paths of constants, of the daemon's own values, of
// what the request's answer gave to the poll and the reconcile, and of
// lookups that stand in the contract's text.
func mentioned(root *strictyaml.Node, c *actions.Contract) []string {
	out := []string{"call.id", "call.idempotency_key"}
	names := append([]string{"target", "request"}, c.Lookups()...)
	for i, n := range names {
		names[i] = regexp.QuoteMeta(n)
	}
	form := regexp.MustCompile(`\b(?:` + strings.Join(names, "|") + `)\.[A-Za-z0-9_.]+`)
	walkTexts(root.Value(), func(s string) {
		for _, path := range form.FindAllString(s, -1) {
			out = append(out, strings.TrimRight(path, "."))
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// nameTexts notes the members at the top that are text or numbers.
func nameTexts(out map[string]string, v any) {
	m, _ := v.(map[string]any)
	for name, v := range m {
		switch v := v.(type) {
		case string:
			out[name] = v
		case json.Number:
			out[name] = string(v)
		}
	}
}

func walkTexts(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case json.Number:
		f(string(v))
	case []any:
		for _, it := range v {
			walkTexts(it, f)
		}
	case map[string]any:
		for _, name := range sortedNames(v) {
			walkTexts(v[name], f)
		}
	}
}

// String tells a hole in one line.
func (h Hole) String() string {
	return fmt.Sprintf("%s: %s: %s at %q: %s; way out: %s", h.Action, h.Row, h.Kind, h.Place, h.Why, h.WayOut)
}
