package openapi

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/actions/scaffold"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// answers reads the described responses: one success, and a code of the
// action's own for each other status that has no built-in row.
func (r *reader) answers() {
	responses, _ := r.p.op["responses"].(object)
	var good []int
	for _, key := range slices.Sorted(maps.Keys(responses)) {
		status, err := strconv.Atoi(key)
		switch {
		case err != nil:
			r.o.Decide("answer %s: a row names exact statuses; write down those that the service really gives", clean(key))
		case status >= 200 && status < 300:
			good = append(good, status)
		case status >= 300 && status < 400:
			r.o.Decide("answer %d: a redirect is never followed; say what it means here", status)
		default:
			r.failure(status, responses[key])
		}
	}
	r.success(good, responses)
}

// success chooses the answer that means done; 202 only where there is no other.
func (r *reader) success(good []int, responses object) {
	r.o.Status = map[string]int{"POST": http.StatusCreated}[r.o.Method]
	if r.o.Status == 0 {
		r.o.Status = http.StatusOK
	}
	if len(good) == 0 {
		r.o.Decide("answer: the description names no success; %d without a body is assumed", r.o.Status)
		return
	}
	i := slices.IndexFunc(good, func(s int) bool { return s != http.StatusAccepted })
	if i < 0 {
		i = 0
		r.o.Decide("answer 202: it says only that the request was taken; add a poll that tells when it is done")
	}
	r.o.Status = good[i]
	for j, s := range good {
		if j != i {
			r.o.Decide("answer %d: it is described too, and the draft has no row for it", s)
		}
	}
	m, err := r.d.resolve(responses[strconv.Itoa(r.o.Status)])
	if err != nil {
		r.o.Leave("answer", err.Error())
		return
	}
	content, _ := m["content"].(object)
	media, form := chooseMedia(content)
	switch {
	case r.o.Method == http.MethodHead || len(content) == 0 || r.o.Status == http.StatusNoContent:
		return // nothing but the status
	case media == nil || form != "json":
		r.o.Decide("answer %d: it is not JSON; the draft expects an empty body", r.o.Status)
		return
	}
	r.answerBody(media)
}

func (r *reader) answerBody(media object) {
	s, ok := r.shaper(false).shape(media["schema"], "answer", 0)
	if !ok || s.Kind != scaffold.Object && s.Kind != scaffold.List {
		r.o.Decide("answer: write expect, success and result; the draft expects an empty body")
		return
	}
	if e, has := firstExample(media); has {
		s.Example = e
	}
	r.o.Answer, r.o.Example = s, s.Example
	out := &outputs{o: r.o, names: map[string]bool{}}
	if s.Kind == scaffold.List {
		out.list("items", "", s, true)
		return
	}
	out.members(s.Members, "", "", true, 0)
	if s.Example != nil && !r.o.Answer.Fits(s.Example) {
		r.o.Decide("fixtures: the description's own example does not fit the closed answer; the fixtures have one that was made up")
	}
	if len(r.o.Outputs) == 0 {
		r.o.Decide("result: nothing of the answer is evidence as described; write down what code may act on")
	}
}

// outputs gathers what leaves.
type outputs struct {
	o     *scaffold.Outline
	names map[string]bool
}

const (
	// maxFlat is how deep members of members are looked for.
	maxFlat = 3
	// maxTexts bounds what is shown to people.
	maxTexts = 5
)

func (x *outputs) members(members []scaffold.Member, prefix, pointer string, required bool, depth int) {
	for _, m := range members {
		at := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(m.Name)
		name := outputName(prefix + m.Name)
		must := required && m.Required && !m.Shape.Null
		switch {
		case m.Shape.Kind == scaffold.Object:
			if depth < maxFlat {
				x.members(m.Shape.Members, prefix+m.Name+"_", at, must, depth+1)
			}
		case m.Shape.Kind == scaffold.List:
			x.list(name, at, m.Shape, must)
		case m.Shape.Kind == scaffold.Text:
			x.text(name, at, m.Shape, must)
		default:
			x.add(scaffold.Output{Name: name, Pointer: at, Required: must, Shape: m.Shape})
		}
	}
}

func (x *outputs) add(out scaffold.Output) {
	out.Shape.Null = false
	switch {
	case out.Name == "" || x.names[out.Name]:
	case len(x.o.Outputs) >= scaffold.MaxOutputs:
		x.o.Leave("result."+out.Name, fmt.Sprintf("the draft lets out %d members; add it where code needs it", scaffold.MaxOutputs))
	case out.Each == nil && !out.Shape.Evidence():
		x.o.Leave("result."+out.Name, "it is no evidence as described; give it a pattern without spaces, or show it under display")
	default:
		x.names[out.Name] = true
		x.o.Outputs = append(x.o.Outputs, out)
	}
}

// list lets out a list of plain values, or of objects with their plain members.
func (x *outputs) list(name, at string, s scaffold.Shape, must bool) {
	if s.Items.Kind != scaffold.Object {
		x.add(scaffold.Output{Name: name, Pointer: at, Required: must, Shape: s})
		return
	}
	var each []scaffold.Output
	var members []scaffold.Member
	for _, m := range s.Items.Members {
		shape, ok := m.Shape, m.Shape.Kind != scaffold.List && m.Shape.Kind != scaffold.Object
		if ok && shape.Kind == scaffold.Text {
			shape, ok = x.id(m.Name, shape, name+"[]."+outputName(m.Name), shape.Example)
		}
		inner := outputName(m.Name)
		twice := slices.ContainsFunc(each, func(o scaffold.Output) bool { return o.Name == inner })
		if shape.Null = false; !ok || twice || inner == "" || !shape.Evidence() {
			continue
		}
		must := m.Required && !m.Shape.Null
		each = append(each, scaffold.Output{Name: inner, Pointer: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(m.Name), Required: must, Shape: shape})
		members = append(members, scaffold.Member{Name: inner, Required: must, Shape: shape})
	}
	if each == nil {
		x.o.Leave("result."+name, "no member of its elements is evidence as described")
		return
	}
	item := scaffold.Shape{Kind: scaffold.Object, Members: members}
	x.add(scaffold.Output{Name: name, Pointer: at, Required: must, Each: each, Shape: scaffold.Shape{Kind: scaffold.List, Max: s.Max, Items: &item}})
}

// idName are endings of names whose text is an id or a word, not a sentence.
var idName = regexp.MustCompile(`(?i)(^|[_.-]|[a-z])(id|key|number|version|state|status|sha|digest|tag|code|type|kind|slug|ref|login|environment|service|channel|ts)$`)

// id takes a text for a word where its name says so; its example must agree.
func (x *outputs) id(name string, s scaffold.Shape, at string, examples ...any) (scaffold.Shape, bool) {
	if !idName.MatchString(name) {
		return s, false
	}
	most := min(s.Max, scaffold.DefaultWord)
	w := scaffold.Shape{Kind: scaffold.Word, Max: most, Pattern: scaffold.WordPattern(most), Example: s.Example}
	for _, e := range examples {
		if e != nil && !w.Fits(e) {
			return s, false
		}
	}
	x.o.Decide("result.%s: the description lets it be any text; up to %d letters, digits and . _ - are assumed", at, most)
	return w, true
}

// text is evidence where it is a word; otherwise it is shown to people.
func (x *outputs) text(name, at string, s scaffold.Shape, must bool) {
	last := at[strings.LastIndex(at, "/")+1:]
	if w, ok := x.id(last, s, name, s.Example, x.o.ExampleAt(at)); ok {
		x.o.Answer.Narrow(at, w)
		x.add(scaffold.Output{Name: name, Pointer: at, Required: must, Shape: w})
		return
	}
	if name == "" || x.names[name] || len(x.o.Texts) >= maxTexts {
		if name != "" {
			x.o.Leave("display."+name, fmt.Sprintf("the draft shows %d texts", maxTexts))
		}
		return
	}
	x.names[name] = true
	x.o.Decide("display.%s: it is text for people, apart from data; take it away where nobody needs it", name)
	x.o.Texts = append(x.o.Texts, scaffold.Output{Name: name, Pointer: at, Required: must, Shape: s})
}

var notInOutput = regexp.MustCompile(`[^a-z0-9]+`)

// camel is where a new word begins in camelCase.
var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// outputName makes a member's name of ours: small letters, digits and _.
func outputName(name string) string {
	s := strings.ToLower(camel.ReplaceAllString(name, "${1}_$2"))
	s = strings.TrimLeft(strings.Trim(notInOutput.ReplaceAllString(s, "_"), "_"), "0123456789_")
	return strings.TrimRight(s[:min(len(s), 60)], "_")
}

// builtIn are statuses with a row of their own for every contract.
var builtIn = []int{401, 403, 404, 408, 429}

// ownCodes are codes for the statuses that descriptions use most; a 4xx says that
// the service refused.
var ownCodes = map[int][2]string{
	400: {"REQUEST_REFUSED", "The service refused the request as it was written; nothing was done."},
	402: {"PAYMENT_NEEDED", "The service wants a payment first; nothing was done."},
	405: {"NOT_POSSIBLE", "The service does not do this here; nothing was done."},
	406: {"NOT_POSSIBLE", "The service does not do this here; nothing was done."},
	409: {"CONFLICT", "The service refused it, since something else stands in the way; nothing was done."},
	410: {"GONE", "What was asked about is gone."},
	412: {"CHANGED_MEANWHILE", "It was changed meanwhile; nothing was done."},
	413: {"TOO_LARGE", "The service refused the request as too large; nothing was done."},
	422: {"VALUES_REFUSED", "The service refused the values; nothing was done."},
	423: {"HELD_BY_ANOTHER", "Somebody else holds it; nothing was done."},
}

func (r *reader) failure(status int, v any) {
	if status < 400 || status > 499 || slices.Contains(builtIn, status) {
		return
	}
	known, ok := ownCodes[status]
	if !ok {
		known = [2]string{"ANSWER_" + strconv.Itoa(status), "The service refused it."}
	}
	if fault.Known(fault.Code(known[0])) {
		known[0] = "SERVICE_" + known[0]
	}
	f := scaffold.Failure{Status: status, Code: known[0], Message: known[1], Media: "none", Body: "{}"}
	if m, err := r.d.resolve(v); err == nil && r.o.Method != http.MethodHead {
		content, _ := m["content"].(object)
		media, form := chooseMedia(content)
		switch {
		case form == "json":
			f.Media = "json"
			if e, has := firstExample(media); has {
				f.Body = string(validate.Canonical(e))
			}
		case content["text/plain"] != nil:
			f.Media = "text"
		case len(content) > 0:
			r.o.Decide("answer %d: it is neither JSON nor text; the draft expects an empty body", status)
		default:
			r.o.Decide("answer %d: the description gives it no content, and the draft expects an empty body; look at a real one", status)
		}
	}
	r.o.Decide("failures.%s: say in your own words what %d means, and whether a new call may succeed", f.Code, status)
	r.o.Failures = append(r.o.Failures, f)
}
