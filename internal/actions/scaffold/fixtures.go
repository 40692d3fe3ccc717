package scaffold

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/validate"
)

// fixture is one file below fixtures/.
type fixture struct {
	file, name string
	input      map[string]any
	answers    []string // each a flow mapping
	want       []string // the lines under want
	sent       bool     // what left is written out
}

// fixtureKey is call.idempotency_key in fixtures of contracts that send it.
const fixtureKey = "6f1c2e9a-4b7d-4c3e-9a50-1d2f3a4b5c6d"

// fixtures makes files of every kind: the answer that is accepted, answers that
// nearly are, failures, and what an attacker would try.
func (o *Outline) fixtures() map[string]string {
	input, body := o.examples()
	list := []fixture{o.accepted(input, body)}
	list = append(list, o.nearMisses(input, body)...)
	list = append(list, o.othersThings(input, body)...)
	list = append(list, o.failing(input)...)
	list = append(list, o.hostile(input, body)...)
	out := map[string]string{}
	for _, f := range list {
		out[f.file+".yaml"] = o.render(f)
	}
	return out
}

// examples are an input and an answer that belong together: a member of the
// answer that is compared with an input has its value.
func (o *Outline) examples() (input map[string]any, body any) {
	input = map[string]any{}
	for _, in := range o.Inputs {
		if v, ok := in.Shape.Sample(); ok || in.Required {
			input[in.Name] = v
		}
	}
	body = o.Example
	if body == nil || !o.Answer.fits(body, forAnswer) {
		body, _ = o.Answer.sample(forAnswer)
	}
	body = deepCopy(body)
	for _, name := range o.bound() {
		i := slices.IndexFunc(o.Outputs, func(x Output) bool { return x.Name == name })
		set(body, o.Outputs[i].Pointer, input[name])
	}
	return input, body
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = deepCopy(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = deepCopy(x)
		}
		return out
	}
	return v
}

func get(body any, pointer string) (any, bool) {
	p, err := validate.ParsePointer(pointer)
	if err != nil {
		return nil, false
	}
	return p.Get(body)
}

// ExampleAt is what the example of the answer has at a pointer, nil for nothing.
func (o *Outline) ExampleAt(pointer string) any {
	v, _ := get(o.Example, pointer)
	return v
}

// set puts a value where one stands already.
func set(body any, pointer string, v any) {
	at := strings.LastIndex(pointer, "/")
	if at < 0 {
		return
	}
	parent, ok := get(body, pointer[:at])
	m, isMap := parent.(map[string]any)
	if name := strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[at+1:]); ok && isMap {
		m[name] = v
	}
}

func (o *Outline) answer(status int, body any) string {
	if o.Answer.Kind == 0 {
		return fmt.Sprintf("{step: request, status: %d}", status)
	}
	return jsonAnswer(status, string(validate.Canonical(body)))
}

func jsonAnswer(status int, body string) string {
	return fmt.Sprintf("{step: request, status: %d, headers: {Content-Type: application/json}, body: %s}", status, quoted(body))
}

func (o *Outline) accepted(input map[string]any, body any) fixture {
	data := tree{}
	for _, x := range o.Outputs {
		if v, ok := x.read(body); ok {
			data = append(data, pair{x.Name, v})
		}
	}
	want := []string{"ok: true", "data: " + flow(data)}
	shown := tree{}
	for _, x := range o.Texts {
		if v, ok := get(body, x.Pointer); ok && v != nil {
			shown = append(shown, pair{x.Name, tree{{"text", v}, {"truncated", false}}})
		}
	}
	if len(shown) > 0 {
		want = append(want, "display: "+flow(shown))
	}
	return fixture{file: "accepted", name: "the answer that is expected", input: input, answers: []string{o.answer(o.Status, body)}, want: want, sent: true}
}

// read is what the output's pick would give.
func (x Output) read(body any) (any, bool) {
	v, ok := get(body, x.Pointer)
	if !ok || v == nil {
		return nil, false
	}
	list, isList := v.([]any)
	if x.Each == nil || !isList {
		return v, true
	}
	out := make([]any, len(list))
	for i, e := range list {
		item := tree{}
		for _, m := range x.Each {
			if v, ok := get(e, m.Pointer); ok && v != nil {
				item = append(item, pair{m.Name, v})
			}
		}
		out[i] = item
	}
	return out, true
}

func refusal(layer string) []string {
	return []string{"ok: false", "code: INVALID_RESPONSE", "layer: " + layer}
}

func (o *Outline) nearMisses(input map[string]any, body any) []fixture {
	near := func(file, name, answer, layer string) fixture {
		return fixture{file: "near-miss-" + file, name: name, input: input, answers: []string{answer}, want: refusal(layer)}
	}
	other := map[bool]int{true: 203, false: 202}[o.Status == 202]
	out := []fixture{near("other-status", "a status that nobody described", jsonAnswer(other, "{}"), "outcome")}
	m, isObject := body.(map[string]any)
	if !isObject {
		if o.Method == "HEAD" || o.Status == 204 {
			return out // HTTP itself lets no body be there
		}
		if o.Answer.Kind == 0 {
			return append(out, near("body", "a body where there is none", jsonAnswer(o.Status, "{}"), "outcome"))
		}
		return append(out, near("object", "an object for a list", jsonAnswer(o.Status, "{}"), "schema"))
	}
	more := maps.Clone(m)
	more["undeclared"] = true
	out = append(out,
		near("more", "a member that nobody described", o.answer(o.Status, more), "schema"),
		near("list", "a list for an object", jsonAnswer(o.Status, "[]"), "schema"))
	for _, x := range o.Answer.Members {
		if x.Required {
			less := maps.Clone(m)
			delete(less, x.Name)
			return append(out, near("less", "a member is missing: "+oneLine(x.Name, DefaultWord), o.answer(o.Status, less), "schema"))
		}
	}
	return out
}

// othersThings are answers about another thing than was asked about, one for each
// check that refuses them: without one nothing shows that the check works.
func (o *Outline) othersThings(input map[string]any, body any) []fixture {
	var out []fixture
	for i, name := range o.bound() {
		at := slices.IndexFunc(o.Outputs, func(x Output) bool { return x.Name == name })
		x := o.Outputs[at]
		other := deepCopy(body)
		for _, v := range x.Shape.others() {
			set(other, x.Pointer, v)
			if !validate.Equal(v, input[name]) && x.Shape.fits(v, forResult) && o.Answer.fits(other, forAnswer) {
				file := "near-miss-another"
				if i > 0 {
					file += "-" + strconv.Itoa(i+1)
				}
				out = append(out, fixture{file: file, name: "an answer about another " + oneLine(name, DefaultWord), input: input, answers: []string{o.answer(o.Status, other)}, want: refusal("check")})
				break
			}
		}
	}
	return out
}

func (o *Outline) failing(input map[string]any) []fixture {
	lost := "after_headers"
	if o.Answer.Kind == 0 {
		lost = "before_answer" // the status alone would do
	}
	out := []fixture{
		{file: "failure-forbidden", name: "the identity may not do this", input: input, answers: []string{jsonAnswer(403, `{"error":"forbidden"}`)}, want: []string{"ok: false", "code: REMOTE_FORBIDDEN"}, sent: true},
		{file: "failure-lost-answer", name: "the answer is lost", input: input, answers: []string{"{step: request, close: " + lost + "}"}, want: []string{"ok: false", "code: " + o.lost()}},
	}
	for _, f := range o.Failures {
		answer := jsonAnswer(f.Status, f.Body)
		switch f.Media {
		case "text":
			answer = fmt.Sprintf("{step: request, status: %d, headers: {Content-Type: text/plain}, body: refused}", f.Status)
		case "none":
			answer = fmt.Sprintf("{step: request, status: %d}", f.Status)
		}
		out = append(out, fixture{file: "failure-" + strconv.Itoa(f.Status), name: "the service answers " + strconv.Itoa(f.Status), input: input, answers: []string{answer}, want: []string{"ok: false", "code: " + f.Code}})
	}
	return out
}

// lost is the code after an answer that never came.
func (o *Outline) lost() string {
	if o.Effect == "read" {
		return "UPSTREAM_UNAVAILABLE"
	}
	return "OUTCOME_UNKNOWN"
}

func (o *Outline) hostile(input map[string]any, body any) []fixture {
	invalid := []string{"ok: false", "code: INVALID_ARGUMENT", "sent: []"}
	elsewhere := maps.Clone(input)
	elsewhere["url"] = "https://evil.example/"
	out := []fixture{{file: "hostile-input-url", name: "an input that would choose the destination", input: elsewhere, want: invalid}}
	for _, in := range o.Inputs {
		if in.Required {
			null := maps.Clone(input)
			null[in.Name] = nil
			out = append(out, fixture{file: "hostile-input-null", name: "null for " + in.Name, input: null, want: invalid})
			break
		}
	}
	for _, in := range o.Inputs {
		if in.Place == InPath && in.Shape.Kind != Whole {
			dots := maps.Clone(input)
			dots[in.Name] = "../admin"
			out = append(out, fixture{file: "hostile-input-dots", name: "a path for " + in.Name, input: dots, want: invalid})
			break
		}
	}
	if m, ok := body.(map[string]any); ok && len(m) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(m)))
		text := string(validate.Canonical(m))
		twice := "{" + string(validate.Canonical(first)) + ":null," + text[1:]
		out = append(out, fixture{file: "hostile-duplicate-member", name: "a member twice", input: input, answers: []string{jsonAnswer(o.Status, twice)}, want: refusal("parse")})
		if o.Identity.Kind != "none" {
			echo := maps.Clone(m)
			echo["undeclared"] = "${credential}"
			out = append(out, fixture{file: "hostile-echo", name: "our credential comes back", input: input, answers: []string{o.answer(o.Status, echo)}, want: []string{"ok: false", "code: INVALID_RESPONSE"}})
		}
	}
	return out
}

func (o *Outline) render(f fixture) string {
	w := &writer{}
	w.line("name: %s", lineText(f.name))
	w.line("input: %s", o.inputFlow(f.input))
	w.line("now: %s", inputSamples.moment)
	if o.IdempotencyHeader != "" {
		w.line("idempotency_key: %s", fixtureKey)
	}
	if len(f.answers) == 0 {
		w.line("answers: []")
	} else {
		w.line("answers:")
	}
	for _, a := range f.answers {
		w.line("  - %s", a)
	}
	w.line("want:")
	for _, l := range f.want {
		w.line("  %s", l)
	}
	if f.sent {
		w.line("  sent:")
		o.sent(w, f.input)
	}
	return w.b.String()
}

// inputFlow writes an input in the order of the contract.
func (o *Outline) inputFlow(input map[string]any) string {
	out := tree{}
	for _, in := range o.Inputs {
		if v, ok := input[in.Name]; ok {
			out = append(out, pair{in.Name, v})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(input)) {
		if !slices.ContainsFunc(out, func(p pair) bool { return p.key == name }) {
			out = append(out, pair{name, input[name]})
		}
	}
	return flow(out)
}

// sent is the request as it must have left.
func (o *Outline) sent(w *writer, input map[string]any) {
	w.line("    - step: request")
	w.line("      method: %s", o.Method)
	w.line("      path: %s", lineText(o.basePath()+o.filled(input)))
	members := map[Place]tree{}
	for _, in := range o.Inputs {
		if v, ok := input[in.Name]; ok {
			members[in.Place] = append(members[in.Place], pair{in.Member, v})
		}
	}
	if len(members[InQuery]) > 0 {
		w.line("      query: %s", flow(members[InQuery]))
	}
	headers := tree{{"Accept", "application/json"}}
	if o.IdempotencyHeader != "" {
		headers = append(headers, pair{o.IdempotencyHeader, fixtureKey})
	}
	w.line("      headers: %s", flow(headers))
	if o.Body != "" {
		w.line("      %s: %s", o.Body, flow(members[InBody]))
	}
}

// filled is the path with the example's values.
func (o *Outline) filled(input map[string]any) string {
	return placeholder.ReplaceAllStringFunc(o.Path, func(m string) string {
		root, name, _ := strings.Cut(m[1:len(m)-1], ".")
		if root == "target" {
			return o.Constants[name]
		}
		switch v := input[name].(type) {
		case string:
			return v
		case json.Number:
			return string(v)
		}
		return m
	})
}
