package actions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// holeSpec is where an identity of kind body puts its secret.
type holeSpec struct {
	json []string // the members on the way, the last one is the secret's; nil for a form
	form string
}

// Hole is where in a request's body the credential goes: at Offset of Body, as
// the text of a JSON string that stands there empty, or as the empty value of a
// form. Who sends it writes the secret in between, escaped as the body needs.
type Hole struct {
	Offset int
	Form   bool
}

// Hole returns where the credential goes in the body; false where it does not
// go there.
func (r Request) Hole() (Hole, bool) { return r.hole, r.holed }

const (
	maxHoleDepth = 8
	maxHoleName  = 128
)

// memberTokens reads a JSON pointer (RFC 6901) to a member of an object.
func memberTokens(pointer string) ([]string, bool) {
	if _, err := validate.ParsePointer(pointer); err != nil || pointer == "" {
		return nil, false
	}
	tokens := pointerTokens(pointer)
	for _, t := range tokens {
		if t == "" || len(t) > maxHoleName || !oneLine(t) {
			return nil, false
		}
	}
	return tokens, len(tokens) <= maxHoleDepth
}

// open writes an empty member for the credential into the body v and encodes it.
// The body is encoded once with nothing there and once with one letter: they part
// where the credential goes.
func (h *holeSpec) open(k bodyKind, v any) (body []byte, at Hole, err error) {
	if (h.json != nil) != (k == bodyJSON) || (h.form != "") != (k == bodyForm) {
		return nil, at, errors.New("the identity's credential has no place in such a body")
	}
	tokens := h.json
	if k == bodyForm {
		tokens = []string{h.form}
	}
	parent, err := parentOf(v, tokens)
	if err != nil {
		return nil, at, fmt.Errorf("the place of the credential: %w", err)
	}
	last := tokens[len(tokens)-1]
	if _, taken := parent[last]; taken {
		return nil, at, errors.New("the place of the credential is taken")
	}
	parent[last] = "0"
	filled, err := encodeBody(k, v)
	if err != nil {
		return nil, at, err
	}
	parent[last] = ""
	if body, err = encodeBody(k, v); err != nil {
		return nil, at, err
	}
	return body, Hole{Offset: parting(body, filled), Form: k == bodyForm}, nil
}

// parting is how many bytes two texts begin with alike.
func parting(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// bindHole holds a step to an identity whose secret goes into the body.
func (d *draft) bindHole(s *stepSpec, t *Target, id *IdentitySpec, told map[string]bool) {
	h := id.hole
	say := func(at strictyaml.Pos, hint, format string, args ...any) {
		d.tell(told, at, "identity-body", hint, format, args...)
	}
	step, key := stepWords(s), "json"
	if h.form != "" {
		key = "form"
	}
	written := s.node.Get(key)
	switch {
	case s.bodyKind == bodyNone:
		say(s.node.Pos, "send it to a target whose identity is sent in a header, or take the step away", "%s has no body, and the identity %q of the target %q is sent in one", step, id.name, t.name)
	case (s.bodyKind == bodyJSON) != (key == "json") || (s.bodyKind == bodyForm) != (key == "form"):
		say(s.node.Pos, "write the body under "+key, "%s has another body than the identity %q of the target %q, which is sent in %s", step, id.name, t.name, key)
	case s.body == nil || written == nil:
		// refused, and told already
	case s.body.op != opObject:
		say(written.Pos, "write the object out", "the body of %s is no object that is written out, so that nobody sees whether it leaves the place of the identity %q free", step, id.name)
	case key == "form":
		for _, m := range s.body.members {
			if sameMember(formBase(m.name), h.form) {
				say(m.pos, "take it out of the body", "the field %s belongs to the identity %q of the target %q", m.name, id.name, t.name)
			}
		}
	default:
		d.freeMember(s.body, h.json, id, t, say)
	}
}

// bindKey keeps the idempotency key out of the credential's place.
func (d *draft) bindKey(t *Target, id *IdentitySpec) {
	key, hole := d.c.idem.json, id.hole.json
	n := min(len(key), len(hole))
	if n == 0 || !slices.EqualFunc(key[:n], hole[:n], sameMember) {
		return
	}
	d.bad(d.root.Get("idempotency").Pos, "identity-body", "let the key stand elsewhere", "the idempotency key and the identity %q of the target %q have the same place in the body", id.name, t.name)
}

// freeMember follows the members on the way to the credential's place.
func (d *draft) freeMember(body *valueNode, tokens []string, id *IdentitySpec, t *Target, say func(at strictyaml.Pos, hint, format string, args ...any)) {
	for i, name := range tokens {
		var next *valueNode
		for _, m := range body.members {
			exact, last := m.name == name, i == len(tokens)-1
			switch {
			case !sameMember(m.name, name):
			case last || !exact:
				say(m.pos, "take it out of the body", "the member %s belongs to the identity %q of the target %q", "/"+strings.Join(tokens[:i+1], "/"), id.name, t.name)
			case m.node.op != opObject:
				say(m.pos, "write the object out", "the member %s must be an object, since the identity %q of the target %q is sent inside it", m.name, id.name, t.name)
			default:
				next = m.node
			}
		}
		if next == nil {
			return
		}
		body = next
	}
}

// sameMember says whether two names may be one to a service that reads them
// without regard to case or to look-alike letters.
func sameMember(a, b string) bool { return folded(plainForm(a)) == folded(plainForm(b)) }

// formBase is the field that a name with brackets belongs to.
func formBase(name string) string {
	base, _, _ := strings.Cut(name, "[")
	return base
}
