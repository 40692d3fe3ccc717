package actions

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// Input is a caller's input that fits the contract it was parsed by. The zero
// value fits none.
type Input struct {
	contract  *Contract
	value     map[string]any
	canonical []byte
}

// ParseInput checks what a caller sent; doc comes from validate.Parse. The
// error is INVALID_ARGUMENT with a pointer and a reason of ours for each
// mistake, and never a value.
func (c *Contract) ParseInput(doc any) (Input, error) {
	if c == nil || c.inputSchema == nil {
		return Input{}, fault.New(fault.Internal, errUnusable)
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return Input{}, fault.Invalid(nil, fault.Field{Pointer: "", Reason: "must be an object"})
	}
	if v := c.inputSchema.Validate(m); v != nil {
		return Input{}, fault.Invalid(nil, explain(c.inputDoc, m, v)...)
	}
	if err := c.pathsTake(m); err != nil {
		return Input{}, err
	}
	own, _ := deepCopy(m).(map[string]any)
	return Input{contract: c, value: own, canonical: validate.Canonical(m)}, nil
}

// pathsTake refuses an input that could not be part of some step's path.
func (c *Contract) pathsTake(m map[string]any) error {
	for _, s := range c.allSteps() {
		for _, p := range s.path.pathInputs() {
			name := strings.TrimPrefix(p.path, "input.")
			v, ok := walkPath(m, name)
			if !ok {
				continue
			}
			if _, err := pathValue(v, p.mode); err != nil {
				return fault.Invalid(err, pathField(name))
			}
		}
	}
	return nil
}

// deepCopy keeps what was checked apart from what the caller still holds.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, sub := range v {
			out[k] = deepCopy(sub)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = deepCopy(sub)
		}
		return out
	}
	return v
}

func pathField(name string) fault.Field {
	return fault.Field{Pointer: "/" + strings.ReplaceAll(name, ".", "/"), Reason: "cannot be part of a path"}
}

// Canonical returns the one spelling of the input.
func (in Input) Canonical() []byte { return slices.Clone(in.canonical) }

// Digest covers the action's name and the input: what DUPLICATE_REQUEST
// compares.
func (in Input) Digest(action string) [32]byte {
	h := sha256.New()
	h.Write([]byte("chatelaine/v1 input\x00" + action + "\x00"))
	h.Write(in.canonical)
	return [32]byte(h.Sum(nil))
}

// Value returns a copy of the input.
func (in Input) Value() map[string]any {
	out, _ := deepCopy(in.value).(map[string]any)
	return out
}

const (
	maxFields  = 16  // mistakes told at once
	maxPointer = 200 // bytes; a longer one is cut at its parent
)

// explain says in our own words what is wrong with an input that both engines
// refused. Where our reading finds nothing, the engines' rule and place stand.
func explain(schema map[string]any, doc any, v *validate.Violation) []fault.Field {
	x := explainer{view: schemaView{root: schema}}
	x.walk(schema, doc, "")
	if len(x.fields) == 0 {
		return []fault.Field{{Pointer: "", Reason: "does not fit the input schema (" + ruleWord(v.Rule) + ")"}}
	}
	return x.fields
}

// ruleWord keeps a rule's name to the letters of a schema keyword.
func ruleWord(rule string) string {
	for _, r := range rule {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return "schema"
		}
	}
	if rule == "" || len(rule) > 40 {
		return "schema"
	}
	return rule
}

type explainer struct {
	view   schemaView
	fields []fault.Field
}

func (x *explainer) add(ptr, reason string) {
	for len(ptr) > maxPointer || !utf8.ValidString(ptr) {
		ptr = ptr[:max(strings.LastIndex(ptr, "/"), 0)]
	}
	f := fault.Field{Pointer: ptr, Reason: reason}
	if len(x.fields) < maxFields && !slices.Contains(x.fields, f) {
		x.fields = append(x.fields, f)
	}
}

func (x *explainer) walk(s map[string]any, v any, ptr string) {
	s = x.view.resolve(s)
	if all, ok := s["allOf"].([]any); ok {
		for _, sub := range all {
			if m, ok := sub.(map[string]any); ok {
				x.walk(m, v, ptr)
			}
		}
	}
	if !typeFits(s["type"], v) {
		x.add(ptr, "must be "+typeWords(s["type"]))
		return
	}
	if set, ok := s["enum"].([]any); ok && !slices.ContainsFunc(set, func(e any) bool { return validate.Equal(e, v) }) {
		x.add(ptr, "is not one of the allowed values")
		return
	}
	if c, ok := s["const"]; ok && !validate.Equal(c, v) {
		x.add(ptr, "is not the allowed value")
		return
	}
	switch v := v.(type) {
	case string:
		x.text(s, v, ptr)
	case json.Number:
		x.number(s, v, ptr)
	case []any:
		x.list(s, v, ptr)
	case map[string]any:
		x.object(s, v, ptr)
	}
}

func typeFits(t any, v any) bool {
	switch t := t.(type) {
	case string:
		n, isNumber := v.(json.Number)
		if t == "integer" {
			if !isNumber {
				return false
			}
			text, err := decimalText(n)
			return err == nil && !strings.Contains(text, ".")
		}
		want := schemaKind(map[string]any{"type": t})
		return want == kindAny || want == kindOf(v)
	case []any:
		return slices.ContainsFunc(t, func(one any) bool { return typeFits(one, v) })
	}
	return true
}

func typeWords(t any) string {
	words := map[string]string{
		"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
		"array": "a list", "object": "an object", "null": "null",
	}
	switch t := t.(type) {
	case string:
		return words[t]
	case []any:
		var out []string
		for _, one := range t {
			s, _ := one.(string)
			out = append(out, words[s])
		}
		return strings.Join(out, " or ")
	}
	return "something else"
}

func intOf(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return int(i), err == nil
}

func (x *explainer) text(s map[string]any, v, ptr string) {
	length := utf8.RuneCountInString(v)
	if n, ok := intOf(s["maxLength"]); ok && length > n {
		x.add(ptr, "is longer than "+itoa(n)+" characters")
		return
	}
	if n, ok := intOf(s["minLength"]); ok && length < n {
		x.add(ptr, "is shorter than "+itoa(n)+" characters")
		return
	}
	if p, ok := s["pattern"].(string); ok && !patternMatches(p, v) {
		x.add(ptr, "does not match the pattern of the schema")
		return
	}
	if f, ok := s["format"].(string); ok && !formatFits(f, v) {
		x.add(ptr, "is not in the format "+f)
	}
}

func formatFits(format, v string) bool {
	switch format {
	case "date":
		_, err := time.Parse("2006-01-02", v)
		return err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, v)
		return err == nil
	}
	return true
}

func (x *explainer) number(s map[string]any, v json.Number, ptr string) {
	for _, b := range []struct {
		key, reason string
		wrong       func(int) bool
	}{
		{"minimum", "is below the least allowed number", func(c int) bool { return c < 0 }},
		{"maximum", "is above the greatest allowed number", func(c int) bool { return c > 0 }},
		{"exclusiveMinimum", "is below the least allowed number", func(c int) bool { return c <= 0 }},
		{"exclusiveMaximum", "is above the greatest allowed number", func(c int) bool { return c >= 0 }},
	} {
		if bound, ok := s[b.key].(json.Number); ok && b.wrong(validate.Compare(v, bound)) {
			x.add(ptr, b.reason)
			return
		}
	}
}

func (x *explainer) list(s map[string]any, v []any, ptr string) {
	if n, ok := intOf(s["maxItems"]); ok && len(v) > n {
		x.add(ptr, "has more than "+itoa(n)+" elements")
		return
	}
	if n, ok := intOf(s["minItems"]); ok && len(v) < n {
		x.add(ptr, "has fewer than "+itoa(n)+" elements")
		return
	}
	if s["uniqueItems"] == true {
		seen := map[string]bool{}
		for i, it := range v {
			key := string(validate.Canonical(it))
			if seen[key] {
				x.add(ptr+"/"+itoa(i), "stands twice")
			}
			seen[key] = true
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		for i, it := range v {
			x.walk(items, it, ptr+"/"+itoa(i))
		}
	}
}

func (x *explainer) object(s map[string]any, v map[string]any, ptr string) {
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := v[name]; !ok {
			x.add(ptr+"/"+escapePointer(name), "is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		sub, known := props[name].(map[string]any)
		switch {
		case known:
			x.walk(sub, v[name], ptr+"/"+escapePointer(name))
		case s["additionalProperties"] == false || s["unevaluatedProperties"] == false && s["allOf"] == nil:
			x.add(ptr+"/"+escapePointer(name), "is not known")
		}
	}
}
