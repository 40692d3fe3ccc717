package actions

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// valueOp is one of the pure functions of the contract format.
type valueOp uint8

const (
	opConst valueOp = iota + 1
	opFrom
	opConcat
	opBase64
	opLower
	opText
	opJSONText
	opJoin
	opAddSeconds
	opEach
	opObject
	opList
)

// valueNode is a value that is worked out from a call: a constant, a path or a
// function around other nodes.
type valueNode struct {
	op       valueOp
	pos      strictyaml.Pos
	lit      any    // opConst
	path     string // opFrom: input.x, target.x, call.x, LOOKUP.x, request.x or the name of an each
	optional bool
	args     []*valueNode
	sep      string // opJoin
	as       string // opEach
	members  []valueMember
}

type valueMember struct {
	name string
	node *valueNode
	pos  strictyaml.Pos
}

// env is what a value may be made from.
type env struct {
	input  map[string]any
	consts func(path string) (any, bool)
	call   CallFacts
	// looked are the lookups' captured values by name, answered those of the
	// request's answer.
	looked   map[string]map[string]any
	answered map[string]any
	// frozen makes call.now a fixed marker, for the digest.
	frozen bool
	vars   map[string]any
}

const (
	nowMarker = "call.now"
	maxText   = 256 << 10 // of one value made by a function; inputs hold 64 KiB in all
)

var errAbsent = errors.New("a value is absent")

// lookup finds a path; a null is as good as absent.
func (e env) lookup(path string) (any, bool) {
	root, rest, dotted := strings.Cut(path, ".")
	if v, ok := e.vars[root]; ok {
		if !dotted {
			return v, v != nil
		}
		m, _ := v.(map[string]any)
		v, ok := walkPath(m, rest)
		return v, ok && v != nil
	}
	switch root {
	case "input":
		v, ok := walkPath(e.input, rest)
		return v, ok && v != nil
	case "target":
		v, ok := e.consts(rest)
		return v, ok && v != nil
	case stepRequest:
		v, ok := walkPath(e.answered, rest)
		return v, ok && v != nil
	}
	if captured, ok := e.looked[root]; ok {
		v, ok := walkPath(captured, rest)
		return v, ok && v != nil
	}
	switch path {
	case "call.id":
		return e.call.CallID, e.call.CallID != ""
	case "call.idempotency_key":
		return e.call.IdempotencyKey, e.call.IdempotencyKey != ""
	case "call.now":
		if e.frozen {
			return nowMarker, true
		}
		return timeText(e.call.Now), true
	}
	return nil, false
}

// cutPath splits a value path after its first word.
func cutPath(path string) (root, rest string, dotted bool) { return strings.Cut(path, ".") }

// timeText is RFC 3339 in UTC, whole seconds: what every service reads.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// eval works the value out. errAbsent means that an optional part is missing.
func (v *valueNode) eval(e env) (any, error) {
	switch v.op {
	case opConst:
		return v.lit, nil
	case opFrom:
		x, ok := e.lookup(v.path)
		switch {
		case ok:
			return x, nil
		case v.optional:
			return nil, errAbsent
		}
		return nil, fmt.Errorf("%s is absent", v.path)
	case opObject:
		return v.object(e)
	case opList:
		return v.list(e)
	case opEach:
		return v.each(e)
	}
	return v.function(e)
}

func (v *valueNode) object(e env) (any, error) {
	out := make(map[string]any, len(v.members))
	for _, m := range v.members {
		x, err := m.node.eval(e)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[m.name] = x
	}
	return out, nil
}

func (v *valueNode) list(e env) (any, error) {
	out := make([]any, 0, len(v.args))
	for _, a := range v.args {
		x, err := a.eval(e)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func (v *valueNode) each(e env) (any, error) {
	x, err := v.args[0].eval(e)
	if err != nil {
		return nil, err
	}
	items, ok := x.([]any)
	if !ok {
		return nil, errors.New("each needs a list")
	}
	out := make([]any, 0, len(items))
	for _, it := range items {
		inner := e
		inner.vars = map[string]any{v.as: it}
		for k, val := range e.vars {
			if k != v.as {
				inner.vars[k] = val
			}
		}
		y, err := v.args[1].eval(inner)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, y)
	}
	return out, nil
}

func (v *valueNode) function(e env) (any, error) {
	args := make([]any, len(v.args))
	for i, a := range v.args {
		x, err := a.eval(e)
		if err != nil {
			return nil, err
		}
		args[i] = x
	}
	out, err := v.apply(args, e)
	if err == nil && len(out) > maxText {
		return nil, fmt.Errorf("a value has more than %d bytes", maxText)
	}
	return out, err
}

func (v *valueNode) apply(args []any, e env) (string, error) {
	switch v.op {
	case opConcat:
		return joinTexts(args, "")
	case opJoin:
		items, ok := args[0].([]any)
		if !ok {
			return "", errors.New("join needs a list")
		}
		return joinTexts(items, v.sep)
	case opJSONText:
		return string(validate.Canonical(args[0])), nil
	case opAddSeconds:
		return addSeconds(args[0], args[1], e.frozen)
	case opText:
		n, ok := args[0].(json.Number)
		if !ok {
			return "", errors.New("text needs a number")
		}
		return decimalText(n)
	}
	s, ok := args[0].(string)
	if !ok {
		return "", errors.New("a function needs text")
	}
	switch v.op {
	case opBase64:
		return base64.StdEncoding.EncodeToString([]byte(s)), nil
	case opLower:
		return strings.ToLower(s), nil
	}
	return "", errors.New("no such function")
}

func joinTexts(items []any, sep string) (string, error) {
	parts := make([]string, len(items))
	for i, it := range items {
		s, ok := it.(string)
		if !ok {
			return "", errors.New("concat and join need texts; put {text: …} around a number")
		}
		parts[i] = s
	}
	return strings.Join(parts, sep), nil
}

// addSeconds moves a time. Under the digest the time is a marker that is moved
// in words.
func addSeconds(at, n any, frozen bool) (string, error) {
	s, ok := at.(string)
	num, isNum := n.(json.Number)
	if !ok || !isNum {
		return "", errors.New("add_seconds needs a time and a number")
	}
	secs, err := num.Int64()
	if err != nil {
		text, derr := decimalText(num)
		if derr != nil {
			return "", derr
		}
		if secs, err = json.Number(text).Int64(); err != nil {
			return "", errors.New("add_seconds needs a whole number")
		}
	}
	if frozen && strings.HasPrefix(s, nowMarker) {
		return fmt.Sprintf("%s%+d", s, secs), nil
	}
	// RFC 3339, section 5.6: T and Z may be small letters.
	t, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil || secs > maxShift || secs < -maxShift {
		return "", errors.New("add_seconds needs an RFC 3339 time and fewer seconds than a century has")
	}
	return timeText(t.Add(time.Duration(secs) * time.Second)), nil
}

// decimalText writes a JSON number without exponent. Inputs have at most 64
// digits and exponents, so the text is short.
func decimalText(n json.Number) (string, error) {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || len(n) > 200 {
		return "", errors.New("not a number")
	}
	if r.IsInt() {
		return r.Num().String(), nil
	}
	const digits = 200
	return strings.TrimRight(r.FloatString(digits), "0"), nil
}

// roots collects the first words of every path under the node ("input",
// "target", "call", "request", a lookup's or an each's name).
func (v *valueNode) roots(out map[string]bool) {
	if v == nil {
		return
	}
	if v.op == opFrom {
		root, _, _ := strings.Cut(v.path, ".")
		out[root] = true
	}
	for _, a := range v.args {
		a.roots(out)
	}
	for _, m := range v.members {
		m.node.roots(out)
	}
}

// usesInput says whether anything of the caller's, or of an answer, is in the
// value. The name of an each stands for an element of another list; only lists of constants are
// free of inputs, and nobody walks those.
func (v *valueNode) usesInput() bool {
	roots := map[string]bool{}
	v.roots(roots)
	for r := range roots {
		if r != "target" && r != "call" {
			return true
		}
	}
	return false
}

// uses says whether a path stands anywhere in the value.
func (v *valueNode) uses(path string) bool {
	if v == nil {
		return false
	}
	found := v.op == opFrom && v.path == path
	for _, a := range v.args {
		found = found || a.uses(path)
	}
	for _, m := range v.members {
		found = found || m.node.uses(path)
	}
	return found
}

// paths collects every value path in the value.
func (v *valueNode) paths(out map[string]bool) {
	if v == nil {
		return
	}
	if v.op == opFrom {
		out[v.path] = true
	}
	for _, a := range v.args {
		a.paths(out)
	}
	for _, m := range v.members {
		m.node.paths(out)
	}
}

// inputs collects every input path in the value.
func (v *valueNode) inputs(out map[string]bool) {
	if v == nil {
		return
	}
	if rest, ok := strings.CutPrefix(v.path, "input."); ok && v.op == opFrom {
		out[rest] = true
	}
	for _, a := range v.args {
		a.inputs(out)
	}
	for _, m := range v.members {
		m.node.inputs(out)
	}
}
