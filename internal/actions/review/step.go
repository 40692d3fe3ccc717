package review

import (
	"strings"

	"chatelaine/internal/actions/strictyaml"
)

// Step is one send and how its answer is read.
type Step struct {
	Kind        string   `json:"kind"` // lookup, request, poll or reconcile
	Name        string   `json:"name"`
	Method      string   `json:"method"`
	Path        string   `json:"path"`
	Query       []Member `json:"query"`
	Headers     []Member `json:"headers"`
	BodyKind    string   `json:"body_kind,omitzero"` // json, form or text
	ContentType string   `json:"content_type,omitzero"`
	Body        *Value   `json:"body,omitzero"`
	Reads       string   `json:"reads,omitzero"` // why a POST only reads
	Timeout     string   `json:"timeout"`
	Every       string   `json:"every,omitzero"`
	Within      string   `json:"within,omitzero"`
	Rows        []Row    `json:"rows"`
}

// Row is one answer that the contract knows.
type Row struct {
	Status string `json:"status"` // the exact numbers, with commas
	Media  string `json:"media"`  // json, text or none
	When   string `json:"when,omitzero"`
	// Body says how the body is held: closed, not described, or where it takes
	// any member.
	Body string `json:"body,omitzero"`
	// Ends is success, failure, capture, pending, took effect or did not take
	// effect.
	Ends     string   `json:"ends"`
	Codes    []string `json:"codes,omitzero"`
	CodeFrom string   `json:"code_from,omitzero"` // where the vendor's word for the code stands
	Captures []Member `json:"captures,omitzero"`
	NotDone  bool     `json:"not_done,omitzero"`
}

// usualTimeout is what the loader takes where a step says nothing.
const usualTimeout = "30s"

func step(s StepText, root *strictyaml.Node) Step {
	n := s.Node
	out := Step{
		Kind: s.Kind, Name: s.Name, Method: nonNil(n.Get("method")).Text, Path: nonNil(n.Get("path")).Text,
		Query: []Member{}, Headers: []Member{}, Rows: []Row{},
		ContentType: nonNil(n.Get("content_type")).Text, Reads: nonNil(n.Get("reads")).Text, Timeout: usualTimeout,
		Every: nonNil(n.Get("every")).Text, Within: nonNil(n.Get("within")).Text,
	}
	if t := n.Get("timeout"); t != nil {
		out.Timeout = t.Text
	}
	for _, m := range members(n.Get("query")) {
		out.Query = append(out.Query, Member{m.Key, valueOf(m.Value)})
	}
	for _, m := range members(n.Get("headers")) {
		out.Headers = append(out.Headers, Member{m.Key, valueOf(m.Value)})
	}
	out.body(n)
	if s.Kind == "request" {
		out.idempotencyKey(root.Get("idempotency"))
	}
	for _, r := range nonNil(n.Get("outcomes")).Items {
		out.Rows = append(out.Rows, row(r))
	}
	return out
}

func (s *Step) body(n *strictyaml.Node) {
	for _, kind := range []string{"json", "form", "text"} {
		b := n.Get(kind)
		if b == nil {
			continue
		}
		v := valueOf(b)
		if kind == "json" {
			v = valueAs(b, bodyFunction(b))
		} else if kind == "form" {
			v = valueAs(b, "")
		}
		s.BodyKind, s.Body = kind, &v
	}
}

// daemonsKey is what stands where the daemon writes its idempotency key.
const daemonsKey = "{call.idempotency_key}"

// idempotencyKey puts the daemon's key where the contract says it goes.
func (s *Step) idempotencyKey(i *strictyaml.Node) {
	if h := i.Get("header"); h != nil {
		s.Headers = append(s.Headers, Member{h.Text, Value{Text: daemonsKey}})
	}
	if ptr := i.Get("json"); ptr != nil && s.Body != nil {
		put(s.Body, strings.Split(strings.TrimPrefix(ptr.Text, "/"), "/"))
	}
}

// put adds the key's member to a body.
func put(v *Value, tokens []string) {
	name := unescapePointer.Replace(tokens[0])
	v.Text = ""
	if len(tokens) == 1 {
		v.Members = append(v.Members, Member{name, Value{Text: daemonsKey}})
		return
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			put(&v.Members[i].Value, tokens[1:])
			return
		}
	}
	inner := Value{}
	put(&inner, tokens[1:])
	v.Members = append(v.Members, Member{name, inner})
}

func row(n *strictyaml.Node) Row {
	out := Row{Media: "json", Codes: failureCodes(n)}
	st := nonNil(n.Get("status"))
	out.Status = st.Text
	if st.Kind == strictyaml.Sequence {
		out.Status = strings.Join(texts(st), ", ")
	}
	if e := n.Get("exit"); e != nil {
		out.Status = "exit " + inline(valueOf(e))
	}
	if m := n.Get("media"); m != nil {
		out.Media = m.Text
	}
	if w := n.Get("when"); w != nil {
		out.When = predicate(w)
	}
	out.Body = bodyWords(n.Get("expect"), out.Media)
	out.Ends = ends(n)
	if f := n.Get("failure"); f != nil {
		out.CodeFrom = nonNil(f.Get("at")).Text
	}
	for _, m := range members(n.Get("capture")) {
		out.Captures = append(out.Captures, Member{m.Key, Value{Text: pick(m.Value)}})
	}
	d := n.Get("not_done")
	out.NotDone = d != nil && d.Truth
	return out
}

func bodyWords(expect *strictyaml.Node, media string) string {
	if expect == nil {
		if media == "none" {
			return ""
		}
		return "not described"
	}
	if open := (bounds{expect}).open(expect); len(open) > 0 {
		return "open at " + strings.Join(open, ", ")
	}
	return "closed"
}

// ends says how a row ends.
func ends(n *strictyaml.Node) string {
	took := n.Get("took_effect")
	switch {
	case took != nil && took.Truth:
		return "took effect"
	case took != nil:
		return "did not take effect"
	case n.Get("success") != nil:
		return "success"
	case n.Get("failure") != nil:
		return "failure"
	case n.Get("pending") != nil:
		return "pending"
	case n.Get("capture") != nil:
		return "goes on"
	}
	return "…"
}
