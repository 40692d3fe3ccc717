package openapi

import (
	"maps"
	"mime"
	"slices"
	"strings"

	"chatelaine/internal/actions/scaffold"
)

// body reads the request's body: each member of its object becomes an input.
func (r *reader) body() {
	if r.p.op["requestBody"] == nil {
		return
	}
	m, err := r.d.resolve(r.p.op["requestBody"])
	if err != nil {
		r.o.Leave("body", err.Error())
		return
	}
	if r.o.Effect == "read" || r.o.Method == "DELETE" {
		r.o.Leave("body", "a "+r.o.Method+" request of a first draft has none")
		return
	}
	content, _ := m["content"].(object)
	media, form := chooseMedia(content)
	if media == nil {
		r.o.Leave("body", "it is neither JSON nor a form")
		r.o.Decide("body: the service takes %s; a contract sends json, form or text", clean(strings.Join(slices.Sorted(maps.Keys(content)), ", ")))
		return
	}
	r.o.Body = form
	s, ok := r.shaper(true).shape(media["schema"], "body", 0)
	if !ok || s.Kind != scaffold.Object {
		if ok {
			r.o.Leave("body", "it is no object")
		}
		r.o.Decide("body: write the members that the service needs; the draft sends an empty one")
		return
	}
	if len(s.Members) == 0 {
		return
	}
	r.members(s, m["required"] == true, media)
	r.missing(media["schema"])
}

// members makes inputs of the body's members.
func (r *reader) members(s scaffold.Shape, required bool, media object) {
	example, _ := firstExample(media)
	whole, _ := example.(object)
	if whole == nil {
		whole, _ = s.Example.(object)
	}
	for _, m := range s.Members {
		if r.o.Body == "form" && !formValue(m.Shape) {
			r.o.Leave("body."+clean(m.Name), "lists and objects of a form are written by hand")
			continue
		}
		in := scaffold.Input{Name: m.Name, Member: m.Name, Place: scaffold.InBody, Required: m.Required, About: m.About, Shape: m.Shape}
		if slices.ContainsFunc(r.o.Inputs, func(o scaffold.Input) bool { return o.Name == in.Name }) {
			in.Name = "body_" + in.Name
		}
		if e, ok := whole[m.Name]; ok {
			in.Shape.Example = e
		}
		r.o.Inputs = append(r.o.Inputs, in)
	}
}

func formValue(s scaffold.Shape) bool { return s.Kind != scaffold.List && s.Kind != scaffold.Object }

// missing names the members that the service requires and the draft leaves out.
func (r *reader) missing(schema any) {
	m, err := r.d.resolve(schema)
	if err != nil {
		return
	}
	m, _, ok := (&shaper{d: r.d, o: &scaffold.Outline{}, input: true, left: maxShapes}).flatten(m, "body", 0)
	if !ok {
		return
	}
	required, _ := m["required"].([]any)
	props, _ := m["properties"].(object)
	for _, v := range required {
		name, _ := v.(string)
		has := slices.ContainsFunc(r.o.Inputs, func(in scaffold.Input) bool { return in.Place == scaffold.InBody && in.Member == name })
		p, err := r.d.resolve(props[name])
		if name != "" && !has && (err != nil || p["readOnly"] != true) {
			r.o.Decide("body.%s: the service requires it; write a constant, or {from: target.NAME} and let the operator fill it", clean(name))
		}
	}
}

// chooseMedia takes JSON before a form.
func chooseMedia(content object) (m object, form string) {
	for _, want := range []string{"json", "form"} {
		for _, name := range slices.Sorted(maps.Keys(content)) {
			media, _ := content[name].(object)
			if media != nil && mediaIs(name, want) {
				return media, want
			}
		}
	}
	return nil, ""
}

func mediaIs(name, want string) bool {
	t, _, err := mime.ParseMediaType(name)
	switch {
	case err != nil:
		return false
	case want == "json":
		return t == "application/json" || strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json")
	}
	return t == "application/x-www-form-urlencoded"
}
