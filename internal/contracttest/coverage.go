package contracttest

import (
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
)

// Coverage says which places of one contract its fixtures reached. Only
// fixtures that play as they say count.
type Coverage struct {
	Action   string `json:"action"`
	Contract string `json:"contract"` // path of contract.yaml
	Places   int    `json:"places"`
	Reached  int    `json:"reached"`
	// OldOnly are the places that only fixtures of old upstream shapes reach;
	// they are among those that were reached.
	OldOnly []CoveredPlace `json:"old_only"`
	Missing []CoveredPlace `json:"missing"`
	// NeverRefused are the checks that held and that no fixture is refused by:
	// nothing shows that they work. They count as reached.
	NeverRefused []CoveredPlace `json:"never_refused"`
}

// CoveredPlace is a place of a contract: an outcome row, a pick, a display text
// or a check.
type CoveredPlace struct {
	Kind string `json:"kind"` // row, pick, display, check
	Name string `json:"name"` // request.outcomes[0], …success.state, checks[1]
	Line int    `json:"line"` // in contract.yaml
	Why  string `json:"why,omitempty"`
}

// place is one place while it is counted.
type place struct {
	CoveredPlace
	now, old int  // fixtures that reached it, of today and of old shapes
	refuses  bool // checks: a fixture is refused by it
}

// counting is the coverage of one contract while its fixtures are counted.
type counting struct {
	o      *outline
	places []*place
	by     map[string]*place
}

func newCounting(o *outline) *counting {
	c := &counting{o: o, by: map[string]*place{}}
	for _, name := range o.order {
		r := o.rows[name]
		c.add("row", name, r.node.Pos.Line)
		for _, part := range []string{"success", "capture", "display"} {
			kind := "pick"
			if part == "display" {
				kind = "display"
			}
			for _, m := range r.picks(part) {
				c.pick(kind, name+"."+part+"."+m.Key, m)
			}
		}
	}
	for _, k := range o.checks {
		c.add("check", k.name, k.line)
	}
	return c
}

func (c *counting) add(kind, name string, line int) {
	p := &place{CoveredPlace: CoveredPlace{Kind: kind, Name: name, Line: line}}
	c.places, c.by[name] = append(c.places, p), p
}

// pick adds a pick and, of a list, the picks of its elements.
func (c *counting) pick(kind, name string, m strictyaml.Member) {
	c.add(kind, name, m.KeyPos.Line)
	if inner := m.Value.Get("each").Get("pick"); inner != nil {
		for _, i := range inner.Members {
			c.pick(kind, name+"."+i.Key, i)
		}
	}
}

// play counts one fixture: each place once, however often it was met.
func (c *counting) play(pl played) {
	if !pl.ok {
		return
	}
	hit := map[string]bool{}
	for _, a := range pl.trace {
		if a.rejection != nil {
			if p := c.by[a.rejection.Check]; p != nil {
				hit[a.rejection.Check], p.refuses = true, true
			}
			continue
		}
		c.answer(a, hit)
	}
	for name := range hit {
		p := c.by[name]
		switch {
		case p == nil:
		case pl.fx.era != "":
			p.old++
		default:
			p.now++
		}
	}
}

// answer notes what one proved answer reached.
func (c *counting) answer(a provedAnswer, hit map[string]bool) {
	row := c.o.rows[a.proved.Row()]
	if row == nil {
		return
	}
	hit[row.name] = true
	if captured, ok := a.proved.Captured(); ok {
		c.members(row.name+".capture", captured, hit)
	}
	if !a.proved.OK() {
		return
	}
	c.members(row.name+".success", a.proved.Data(), hit)
	for name := range a.proved.Display() {
		hit[row.name+".display."+name] = true
	}
	for _, k := range c.o.checks {
		if k.kind == "signed" || slices.ContainsFunc(row.picks("success"), func(m strictyaml.Member) bool { return slices.Contains(k.members(), m.Key) }) {
			hit[k.name] = true
		}
	}
}

// members notes the picks that gave a value, also inside lists.
func (c *counting) members(prefix string, values map[string]any, hit map[string]bool) {
	for name, v := range values {
		hit[prefix+"."+name] = true
		list, _ := v.([]any)
		for _, it := range list {
			if m, ok := it.(map[string]any); ok {
				c.members(prefix+"."+name, m, hit)
			}
		}
	}
}

// coverage sums up.
func (c *counting) coverage(action string) Coverage {
	out := Coverage{
		Action: action, Contract: c.o.file, Places: len(c.places),
		OldOnly: []CoveredPlace{}, Missing: []CoveredPlace{}, NeverRefused: []CoveredPlace{},
	}
	for _, p := range c.places {
		if p.Kind == "check" && p.now+p.old > 0 && !p.refuses {
			out.NeverRefused = append(out.NeverRefused, p.CoveredPlace)
		}
		switch {
		case p.now > 0:
			out.Reached++
		case p.old > 0:
			out.Reached++
			out.OldOnly = append(out.OldOnly, p.CoveredPlace)
		default:
			missing := p.CoveredPlace
			missing.Why = p.why()
			out.Missing = append(out.Missing, missing)
		}
	}
	return out
}

// why says what a fixture would have to do to reach the place.
func (p *place) why() string {
	switch p.Kind {
	case "check":
		return "no fixture comes to it"
	case "row":
		return "no fixture's answer matches it"
	}
	return "no fixture's answer has it"
}

// coverageOf counts what was played, by action. A contract without a fixture has
// every place missing.
func (p player) coverageOf(chosen []*actions.Contract, all []played) []Coverage {
	out := make([]Coverage, 0, len(chosen))
	for _, contract := range chosen {
		c := newCounting(p.outlines[contract.Action()])
		for _, pl := range all {
			if pl.fx.action == contract.Action() {
				c.play(pl)
			}
		}
		out = append(out, c.coverage(contract.Action()))
	}
	return out
}

// MissingWords lists places for one line, at most as many as given.
func MissingWords(places []CoveredPlace, most int) string {
	var names []string
	for _, p := range places[:min(len(places), most)] {
		names = append(names, fmt.Sprintf("%s (line %d)", p.Name, p.Line))
	}
	if more := len(places) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
