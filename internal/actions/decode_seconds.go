package actions

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"chatelaine/internal/actions/strictyaml"
)

// maxShift bounds what add_seconds moves a time by: a century, in seconds.
const maxShift = 100 * 366 * 24 * 3600

// addSecondsArgs holds the two values of add_seconds to what it can work out
// for every call: a time and a number of whole seconds below a century. What
// the operator's constants are is seen when the targets are known.
func (d *draft) addSecondsArgs(at, n *valueNode, sc scope) bool {
	if at == nil || n == nil {
		return false
	}
	if !d.isMoment(at, sc) {
		d.bad(at.pos, "value-time", "write call.now, an RFC 3339 time, or an input of format date-time", "add_seconds begins with a time")
		return false
	}
	if !d.isShift(n, sc) {
		d.bad(n.pos, "value-time", "write a whole number, or an input of type integer with minimum and maximum", "add_seconds moves by whole seconds, fewer than a century has")
		return false
	}
	return true
}

func (d *draft) isMoment(v *valueNode, sc scope) bool {
	switch v.op {
	case opAddSeconds:
		return true
	case opConst:
		s, ok := v.lit.(string)
		_, err := time.Parse(time.RFC3339, s)
		return ok && err == nil
	case opFrom:
		if strings.HasPrefix(v.path, "target.") || v.path == "call.now" {
			return true
		}
		s := d.valueSchema(v.path, sc)
		return s != nil && s["format"] == "date-time"
	}
	return false
}

func (d *draft) isShift(v *valueNode, sc scope) bool {
	switch v.op {
	case opConst:
		return wholeWithin(v.lit)
	case opFrom:
		if strings.HasPrefix(v.path, "target.") {
			return true
		}
		s := d.valueSchema(v.path, sc)
		if s == nil {
			return false
		}
		if vs, ok := s["enum"].([]any); ok {
			for _, x := range vs {
				if !wholeWithin(x) {
					return false
				}
			}
			return true
		}
		if c, ok := s["const"]; ok {
			return wholeWithin(c)
		}
		return s["type"] == "integer" && wholeWithin(s["minimum"]) && wholeWithin(s["maximum"])
	}
	return false
}

// wholeWithin says whether a JSON number is whole and within maxShift.
func wholeWithin(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return false
	}
	return r.Num().CmpAbs(big.NewInt(maxShift)) <= 0
}

// valueSchema returns the schema behind an input's path, a captured value's or
// the name of an each, nil for any other.
func (d *draft) valueSchema(path string, sc scope) map[string]any {
	root, rest, dotted := strings.Cut(path, ".")
	s, ok := sc[root]
	if !ok {
		if g, captured := d.gatheredBy(root); captured {
			shapes, _, _ := g.look(rest)
			return alternatives(shapes)
		}
		if root != "input" {
			return nil
		}
		s = d.in.root
	}
	if s != nil && dotted {
		s, _, _ = d.in.property(s, rest)
	}
	return s
}

// isResultTime wants a member that the result schema holds to a real time, so
// that the check cannot fail for every answer.
func (d *draft) isResultTime(at *strictyaml.Node, check string) bool {
	s, _, _ := d.resultView.property(d.c.resultDoc, strings.TrimPrefix(at.Text, "result."))
	if s["format"] == "date-time" {
		return true
	}
	d.bad(at.Pos, "check", "write format: date-time in the result, and time: in the pick where the answer has another form", "%s compares times, and %s is none", check, at.Text)
	return false
}
