package scaffold

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Answers are what a person says about an action that no description describes.
type Answers struct {
	Action, Effect, Service, Method, Path string
	Summary, Owner, URL                   string
	Inputs, Outputs                       []string
}

// FromAnswers makes an outline, or says everything that is wrong.
func FromAnswers(a Answers) (*Outline, []string) {
	o := &Outline{
		Action: a.Action, Effect: strings.ToLower(a.Effect), Service: a.Service, Method: strings.ToUpper(a.Method),
		Summary: a.Summary, Owner: a.Owner, URL: a.URL, Identity: Identity{Kind: "bearer"},
	}
	var wrong []string
	for _, spec := range a.Inputs {
		in, err := ParseInput(spec)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		o.Inputs = append(o.Inputs, in)
	}
	for _, spec := range a.Outputs {
		x, err := ParseOutput(spec)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		o.place(x)
	}
	wrong = append(wrong, tooLong("summary", a.Summary, maxSummary)...)
	wrong = append(wrong, tooLong("owner", a.Owner, maxOwner)...)
	o.Path = o.putInPath(a.Path)
	o.placeInputs()
	wrong = append(wrong, o.answered()...)
	if wrong = append(wrong, o.Complete()...); len(wrong) > 0 {
		return nil, wrong
	}
	return o, nil
}

// The texts that a contract takes. A description's are cut there; what a person
// wrote is not cut without a word.
const (
	maxSummary = 200
	maxOwner   = 100
)

func tooLong(what, text string, most int) []string {
	if n := utf8.RuneCountInString(text); n > most {
		return []string{fmt.Sprintf("the %s has %d characters, and a contract takes %d", what, n, most)}
	}
	return nil
}

// Complete fills what was not given, each as a decision, and says everything that
// is wrong: where it says nothing, a skeleton can be written.
func (o *Outline) Complete() []string {
	o.standard()
	if wrong := o.check(); len(wrong) > 0 {
		return wrong
	}
	o.finish()
	return nil
}

// place sorts an output into data or what is shown to people.
func (o *Outline) place(x Output) {
	if x.Shape.Kind == Text {
		o.Texts = append(o.Texts, x)
		return
	}
	if x.Shape.Kind == List {
		x.Shape.Max = max(x.Shape.Max, 1)
	}
	o.Outputs = append(o.Outputs, x)
}

// putInPath writes the placeholders {NAME} as {input.NAME}.
func (o *Outline) putInPath(path string) string {
	return placeholder.ReplaceAllStringFunc(path, func(m string) string {
		name := strings.TrimPrefix(m[1:len(m)-1], "input.")
		return "{input." + name + "}"
	})
}

// placeInputs puts each input into the path where it has a placeholder, else
// into the body, or the query of a request that has none.
func (o *Outline) placeInputs() {
	body := slices.Contains([]string{"POST", "PUT", "PATCH"}, o.Method)
	if body {
		o.Body = "json"
	}
	for i, in := range o.Inputs {
		switch {
		case strings.Contains(o.Path, "{input."+in.Name+"}"):
			o.Inputs[i].Place = InPath
		case body:
			o.Inputs[i].Place = InBody
		default:
			o.Inputs[i].Place = InQuery
		}
	}
}

// answered makes the whole answer of the outputs' places.
func (o *Outline) answered() (wrong []string) {
	o.Status = map[string]int{"POST": 201}[o.Method]
	if o.Status == 0 {
		o.Status = 200
	}
	all := append(slices.Clone(o.Outputs), o.Texts...)
	if len(all) == 0 {
		if o.Status = 204; o.Method == "GET" {
			o.Status = 200
		}
		return nil
	}
	o.Answer = Shape{Kind: Object}
	for _, x := range all {
		tokens := strings.Split(x.Pointer[1:], "/")
		grow := &o.Answer
		clash := slices.ContainsFunc(all, func(y Output) bool { return strings.HasPrefix(y.Pointer, x.Pointer+"/") })
		if clash {
			wrong = append(wrong, fmt.Sprintf("%s is both a value and an object", x.Pointer))
			continue
		}
		for i, t := range tokens {
			t = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
			leaf := i == len(tokens)-1
			grow = grow.member(t, leaf, x)
		}
	}
	return wrong
}

// member finds or adds a member of an object.
func (s *Shape) member(name string, leaf bool, x Output) *Shape {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		m := Member{Name: name, Required: x.Required, Shape: Shape{Kind: Object}}
		if leaf {
			m.Shape = x.Shape
			if m.Shape.Kind == Text {
				m.Shape.Max = max(m.Shape.Max, longText)
			}
		}
		s.Members = append(s.Members, m)
		i = len(s.Members) - 1
	}
	s.Members[i].Required = s.Members[i].Required || x.Required
	return &s.Members[i].Shape
}

// standard fills what was not given, each as a decision.
func (o *Outline) standard() {
	if o.Summary == "" && o.Action != "" {
		words := strings.ReplaceAll(o.Action, "_", " ")
		o.Summary = strings.ToUpper(words[:1]) + words[1:] + "."
		o.Decide("summary: say in one sentence what an agent gets done; it is made of the action's name")
	}
	o.Summary = oneLine(o.Summary, maxSummary)
	if o.Owner == "" {
		o.Owner = "nobody yet"
		o.Decide("owner: name who answers for this contract")
	}
	o.Owner = oneLine(o.Owner, maxOwner)
	if o.URL == "" {
		o.URL = "https://" + hostOf(o.Service) + ".example"
		o.Decide("target: %s stands for the service's address; the operator writes the real one into targets.yaml", o.URL)
	}
}

// hostOf makes a host's name of a target's.
func hostOf(service string) string {
	s := strings.Trim(strings.NewReplacer("_", "-", ".", "-").Replace(service), "-")
	if s == "" {
		return "service"
	}
	return s[:min(len(s), 60)]
}

// finish adds the decisions that every skeleton leaves, and renames an output
// that has the name of an input with which it cannot be compared.
func (o *Outline) finish() {
	o.narrow()
	for i, x := range o.Outputs {
		for _, in := range o.Inputs {
			if in.Name == x.Name && !sameKind(in, x) {
				o.Outputs[i].Name = "answered_" + x.Name
				o.Decide("result.%s: it has the name of an input and is not compared with it; say whether it should be", o.Outputs[i].Name)
			}
		}
	}
	for _, x := range o.Outputs {
		for _, e := range x.Each {
			if slices.ContainsFunc(o.Inputs, func(in Input) bool { return in.Name == e.Name }) {
				o.Decide("result.%s[].%s: it has the name of an input; say with when or a check that each element is about what was asked", x.Name, e.Name)
			}
		}
	}
	if o.Effect != "read" && o.IdempotencyHeader == "" {
		o.Decide("once: say how a repeat is known (idempotency, reconcile) or why one attempt is right (at_most_once)")
	}
	if o.Effect != "read" {
		o.Decide("approval: read the sentence as the person who approves would; ask is every_call until you say otherwise")
	}
	if o.Effect == "read" && len(o.Outputs) > 0 {
		o.Decide("checks: add fresh where an old answer would mislead")
	}
	o.Decide("answers: compare expect with a real answer; a member that is not described makes the answer invalid")
}

// sameKind says whether the check same can hold: both always there, and of
// one kind.
func sameKind(in Input, x Output) bool {
	text := func(s Shape) bool {
		if s.Kind == Choice {
			return len(s.Values) > 0 && isText(s.Values[0])
		}
		return slices.Contains([]Kind{Text, Word, Moment, Day, UUID}, s.Kind)
	}
	whole := func(s Shape) bool { return s.Kind == Whole || s.Kind == Decimal }
	return in.Required && x.Required && (text(in.Shape) && text(x.Shape) || whole(in.Shape) && whole(x.Shape) || in.Shape.Kind == YesNo && x.Shape.Kind == YesNo)
}
