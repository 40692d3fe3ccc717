package scaffold

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// writer gathers the lines of a file.
type writer struct{ b strings.Builder }

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.b, format+"\n", args...)
}

// Contract is the text of contract.yaml.
func (o *Outline) contract() string {
	w := &writer{}
	o.head(w)
	w.line("contract: v1")
	w.line("action: %s", o.Action)
	w.line("version: 0.1.0")
	w.line("summary: %s", lineText(o.Summary))
	w.line("owner: %s", lineText(o.Owner))
	w.line("effect: %s", o.Effect)
	w.line("")
	o.inputs(w)
	w.line("")
	w.line("# The target's address and identity stand in the site file, never here.")
	w.line("route: {target: %s}", quoted(o.Service))
	w.line("")
	o.approval(w)
	o.request(w)
	o.result(w)
	o.rest(w)
	return w.b.String()
}

func (o *Outline) head(w *writer) {
	w.line("# A first draft%s.", from(o.Source))
	if len(o.Decisions) > 0 {
		w.line("# Before anybody calls it, decide these and take their lines away:")
		for i, d := range o.Decisions {
			w.line("#  %2d. %s", i+1, d)
		}
	}
	if len(o.LeftOut) > 0 {
		w.line("# Left out, and why:")
		for _, l := range o.LeftOut {
			w.line("#   - %s", l)
		}
	}
}

func from(source string) string {
	if source == "" {
		return ""
	}
	return ", made from " + oneLine(source, maxNote)
}

// inputs writes the schema of the input, one member a line.
func (o *Outline) inputs(w *writer) {
	var required []any
	for _, in := range o.Inputs {
		if in.Required {
			required = append(required, in.Name)
		}
	}
	w.line("input:")
	w.line("  type: object")
	w.line("  additionalProperties: false")
	if required != nil {
		w.line("  required: %s", flow(required))
	}
	if len(o.Inputs) == 0 {
		w.line("  properties: {}")
		return
	}
	w.line("  properties:")
	for _, in := range o.Inputs {
		if in.About != "" {
			w.line("    # %s", oneLine(in.About, maxNote))
		}
		w.line("    %s: %s", quoted(in.Name), flow(in.Shape.schema(forInput)))
	}
}

const (
	maxInSentence = 4   // inputs; more make no sentence
	maxSentence   = 240 // characters, below the loader's own bound
	maxLabel      = 40
)

// approval writes the sentence and the lines of the card, which together show
// every input.
func (o *Outline) approval(w *writer) {
	if o.Effect == "read" {
		return
	}
	sentence := strings.TrimRight(oneLine(braceless.ReplaceAllString(o.Summary, " "), maxSentence), ". ")
	said := map[string]bool{}
	for _, in := range o.Inputs {
		more := fmt.Sprintf("%s %s {input.%s}", separator(len(said)), in.Name, in.Name)
		short := in.Required && in.Shape.scalar() && in.Shape.Kind != Text
		if short && len(said) < maxInSentence && len([]rune(sentence+more)) < maxSentence {
			sentence += more
			said[in.Name] = true
		}
	}
	w.line("approval:")
	w.line("  sentence: %s", quoted(sentence))
	labels := map[string]bool{}
	first := true
	for _, in := range o.Inputs {
		if said[in.Name] {
			continue
		}
		if first {
			w.line("  show:")
			first = false
		}
		w.line("    %s: %s", quoted(label(in.Name, labels)), in.value())
	}
	w.line("  ask: every_call")
	w.line("")
}

// separator stands before the first input of a sentence, and before the others.
func separator(before int) string {
	if before == 0 {
		return ":"
	}
	return ","
}

var braceless = regexp.MustCompile(`[{}]`)

// label makes a line's label of an input's name: due_date is Due date.
func label(name string, taken map[string]bool) string {
	s := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' }), " ")
	s = oneLine(strings.ToUpper(s[:1])+s[1:], maxLabel-2)
	for n := 2; taken[s]; n++ {
		s = fmt.Sprintf("%s %d", s, n)
	}
	taken[s] = true
	return s
}

// value is the input as a value node.
func (in Input) value() string {
	if in.Required {
		return "{from: input." + in.Name + "}"
	}
	return "{from: input." + in.Name + ", optional: true}"
}

func (o *Outline) request(w *writer) {
	w.line("request:")
	w.line("  method: %s", o.Method)
	w.line("  path: %s", lineText(o.Path))
	o.members(w, InQuery, "query")
	w.line("  headers: {Accept: application/json}")
	if o.Body != "" {
		o.members(w, InBody, o.Body)
	}
	w.line("  timeout: 20s")
	w.line("  outcomes:")
	o.successRow(w)
	for _, f := range o.Failures {
		w.line("    - status: %d", f.Status)
		if f.Media != "json" {
			w.line("      media: %s", f.Media)
		}
		w.line("      failure: %s", f.Code)
	}
	w.line("")
}

func (o *Outline) members(w *writer, at Place, key string) {
	var lines []string
	for _, in := range o.Inputs {
		if in.Place == at {
			lines = append(lines, fmt.Sprintf("    %s: %s", quoted(in.Member), in.value()))
		}
	}
	switch {
	case len(lines) > 0:
		w.line("  %s:\n%s", key, strings.Join(lines, "\n"))
	case at == InBody:
		w.line("  %s: {}", key)
	}
}

func (o *Outline) successRow(w *writer) {
	w.line("    - status: %d", o.Status)
	if o.Answer.Kind == 0 {
		w.line("      media: none")
		w.line("      success: {}")
		return
	}
	w.line("      # The whole answer, closed: what is not written here makes it invalid.")
	w.line("      expect: %s", flow(o.Answer.schema(forAnswer)))
	if len(o.Outputs) == 0 {
		w.line("      success: {}")
	} else {
		w.line("      success:")
		for _, x := range o.Outputs {
			w.line("        %s: %s", quoted(x.Name), x.pick())
		}
	}
	if len(o.Texts) > 0 {
		w.line("      display:")
		for _, x := range o.Texts {
			w.line("        %s: {at: %s, optional: true}", quoted(x.Name), quoted(x.Pointer))
		}
	}
}

// pick says where the output comes from.
func (x Output) pick() string {
	switch {
	case x.Each != nil:
		members := tree{}
		for _, e := range x.Each {
			members = append(members, pair{e.Name, e.pointerPick()})
		}
		return flow(tree{{"each", tree{{"in", x.Pointer}, {"max", x.Shape.Max}, {"pick", members}}}})
	}
	return flow(x.pointerPick())
}

func (x Output) pointerPick() any {
	if x.Required {
		return x.Pointer
	}
	return tree{{"at", x.Pointer}, {"optional", true}}
}

func (o *Outline) result(w *writer) {
	w.line("result:")
	w.line("  type: object")
	w.line("  additionalProperties: false")
	var required []any
	for _, x := range o.Outputs {
		if x.Required {
			required = append(required, x.Name)
		}
	}
	if required != nil {
		w.line("  required: %s", flow(required))
	}
	if len(o.Outputs) == 0 {
		w.line("  properties: {}")
	} else {
		w.line("  properties:")
		for _, x := range o.Outputs {
			w.line("    %s: %s", quoted(x.Name), flow(x.Shape.schema(forResult)))
		}
	}
	if len(o.Texts) > 0 {
		w.line("")
		w.line("display:")
		for _, x := range o.Texts {
			w.line("  %s: {max: 2000, lines: 40}", quoted(x.Name))
		}
	}
	w.line("")
}

// rest writes checks, how a change is done once, and the action's own codes.
func (o *Outline) rest(w *writer) {
	if bound := o.bound(); len(bound) > 0 {
		w.line("checks:")
		for _, name := range bound {
			w.line("  - same: [result.%s, input.%s]", name, name)
		}
		w.line("")
	}
	if o.Effect != "read" {
		if o.IdempotencyHeader != "" {
			w.line("idempotency: {header: %s}", quoted(o.IdempotencyHeader))
		} else {
			w.line("at_most_once: Not decided yet; the first draft sends it once and never again.")
		}
	}
	if len(o.Failures) > 0 {
		w.line("")
		w.line("failures:")
		var told []string
		for _, f := range o.Failures {
			if slices.Contains(told, f.Code) {
				continue
			}
			told = append(told, f.Code)
			w.line("  %s: {message: %s, retryable: false}", f.Code, quoted(f.Message))
		}
	}
}

// bound are the outputs that have the name of an input: an answer about another
// thing is no answer.
func (o *Outline) bound() []string {
	var out []string
	for _, x := range o.Outputs {
		if slices.ContainsFunc(o.Inputs, func(in Input) bool { return in.Name == x.Name }) {
			out = append(out, x.Name)
		}
	}
	return out
}
