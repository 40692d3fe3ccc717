package actions

import (
	"maps"
	"slices"
	"strings"

	"chatelaine/internal/validate"
)

// pollBound wants the success of a change's poll to be about this call: what the
// service says last may be about another one.
func (l *linter) pollBound() {
	p := l.c.poll
	if l.c.effect == Read || p == nil {
		return
	}
	naming := l.c.naming()
	if slices.ContainsFunc(sortedKeys(p.askedPaths()), func(path string) bool {
		return ofTheCall(path) && (!ofTheInput(path) || slices.Contains(naming, path))
	}) {
		return
	}
	for i, row := range p.rows {
		if row.HasSuccess && !pollTied(row, l.c.checks) {
			l.say("poll-not-bound", p.rowPos[i], "ask for the thing in the path or the query, or compare the answer in `when`, `find` or a check with request.…, call.id, a lookup's value or an input",
				"this row says that the change is done, and nothing ties its answer to this call")
		}
	}
}

func ofTheInput(path string) bool { return strings.HasPrefix(path, "input.") }

// pollTied says whether a row compares anything of this call with the answer.
func pollTied(row validate.RowSpec, checks []validate.CheckSpec) bool {
	ties := rowTies(row, true)
	for _, kind := range []string{"same", "increased"} {
		maps.Copy(ties, checkTies(row, checks, kind))
	}
	return slices.ContainsFunc(sortedKeys(ties), ofTheCall)
}

// naming lists the values that name the thing, of a contract that loads.
func (c *Contract) naming() []string {
	d := draft{c: c, in: schemaView{root: c.inputDoc}, captured: map[string]*gathered{}}
	for _, s := range c.lookups {
		d.captured[s.name] = &gathered{step: s}
	}
	return d.namingPaths()
}
