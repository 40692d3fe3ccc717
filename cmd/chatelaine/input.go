package main

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// maxInput is the largest body the daemon takes from a caller.
const maxInput = 64 << 10

// schema is the part of an action's input schema that says how an argument's
// text becomes a JSON value. The daemon checks everything else.
type schema struct {
	Properties map[string]property `json:"properties"`
	Defs       map[string]property `json:"$defs"`
}

type property struct {
	Ref   string           `json:"$ref"`
	Type  typeList         `json:"type"`
	Enum  []jsontext.Value `json:"enum"`
	Const jsontext.Value   `json:"const"`
}

// typeList is a schema's type: one word or a list.
type typeList []string

func (t *typeList) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("[")) {
		var list []string
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		*t = list
		return nil
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*t = []string{one}
	return nil
}

func parseSchema(doc jsontext.Value) (schema, error) {
	var s schema
	if err := json.Unmarshal(doc, &s); err != nil {
		return s, refused("the action's input schema cannot be read", "give the input with --json-input FILE")
	}
	return s, nil
}

// types are the JSON types that the property may have.
func (s schema) types(p property) []string {
	if name, ok := strings.CutPrefix(p.Ref, "#/$defs/"); ok {
		p = s.Defs[name]
	}
	if len(p.Type) > 0 {
		return p.Type
	}
	var out []string
	for _, v := range append(p.Enum, p.Const) {
		if len(v) > 0 {
			if k := kindName(v.Kind()); !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	case '[':
		return "array"
	case '{':
		return "object"
	}
	return ""
}

// buildInput turns key=value arguments into the input object. Every mistake is
// reported at once; values are never repeated, because they may be private.
func buildInput(action string, s schema, args []string) (jsontext.Value, error) {
	values := map[string]jsontext.Value{}
	var wrong []string
	for _, arg := range args {
		key, text, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			wrong = append(wrong, fmt.Sprintf("%q is not of the form key=value", key))
			continue
		}
		p, known := s.Properties[key]
		if !known {
			wrong = append(wrong, unknownKey(action, key, s))
			continue
		}
		if _, twice := values[key]; twice {
			wrong = append(wrong, key+" is given twice")
			continue
		}
		v, err := valueOf(text, s.types(p))
		if err != nil {
			wrong = append(wrong, key+" "+err.Error())
			continue
		}
		values[key] = v
	}
	if len(wrong) > 0 {
		return nil, usage(strings.Join(wrong, "\n"), "see chatelaine actions "+action)
	}
	return json.Marshal(values, json.Deterministic(true))
}

func unknownKey(action, key string, s schema) string {
	var names []string
	for n := range s.Properties {
		names = append(names, n)
	}
	slices.Sort(names)
	msg := fmt.Sprintf("%s has no input %q", action, key)
	if near := nearest(key, names); near != "" {
		return msg + "; did you mean " + near + "?"
	}
	if len(names) == 0 {
		return msg + "; it takes none"
	}
	return msg + "; it has " + strings.Join(names, ", ")
}

var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// valueOf reads the text by type. A string is taken as it is typed; everything
// else is JSON.
func valueOf(text string, types []string) (jsontext.Value, error) {
	if len(types) == 0 || slices.Contains(types, "string") {
		b, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return nil, errors.New("is not text in UTF-8")
		}
		return b, nil
	}
	v := jsontext.Value(text)
	if !v.IsValid() {
		return nil, errors.New("must be " + wanted(types))
	}
	kind := kindName(v.Kind())
	for _, t := range types {
		switch {
		case t == kind,
			t == "integer" && kind == "number" && wholeNumber.MatchString(strings.TrimSpace(text)):
			return v, nil
		}
	}
	return nil, errors.New("must be " + wanted(types))
}

func wanted(types []string) string {
	var out []string
	for _, t := range types {
		switch t {
		case "integer":
			out = append(out, "a whole number")
		case "number":
			out = append(out, "a number")
		case "boolean":
			out = append(out, "true or false")
		case "null":
			out = append(out, "null")
		case "array":
			out = append(out, `a JSON list such as ["a","b"]`)
		case "object":
			out = append(out, `a JSON object such as {"a":1}`)
		default:
			out = append(out, "JSON")
		}
	}
	return strings.Join(out, " or ")
}

// readInput reads --json-input: one strict JSON object from a file or, for
// "-", from standard input.
func (a *app) readInput(name string) (jsontext.Value, error) {
	where, r := name, a.in
	if name == "-" {
		where = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, usage(fmt.Sprintf("cannot open %s: %v", name, plainCause(err)))
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, usage(fmt.Sprintf("cannot read %s: %v", where, plainCause(err)))
	}
	if len(b) > maxInput {
		return nil, usage(fmt.Sprintf("%s is larger than %d bytes, the most an input may have", where, maxInput))
	}
	return checkInput(where, b)
}

func checkInput(where string, b []byte) (jsontext.Value, error) {
	var v jsontext.Value
	if err := json.Unmarshal(b, &v); err != nil {
		var syn *jsontext.SyntacticError
		if errors.As(err, &syn) {
			line, col := lineOf(b, syn.ByteOffset)
			return nil, usage(fmt.Sprintf("%s:%d:%d: this is not strict JSON (%s)", where, line, col, syntaxReason(syn)))
		}
		return nil, usage(where + " is not strict JSON")
	}
	if v.Kind() != '{' {
		return nil, usage(fmt.Sprintf("%s holds %s; the input is an object", where, article(kindName(v.Kind()))))
	}
	return v, nil
}

func syntaxReason(e *jsontext.SyntacticError) string {
	if errors.Is(e, jsontext.ErrDuplicateName) {
		return "a name is given twice"
	}
	if errors.Is(e, io.ErrUnexpectedEOF) || errors.Is(e, io.EOF) {
		return "it ends too early"
	}
	return "unexpected text, bad UTF-8 or trailing data"
}

func article(kind string) string {
	switch kind {
	case "array", "object":
		return "an " + kind
	case "null", "":
		return "nothing but null"
	}
	return "a " + kind
}

// lineOf turns a byte offset into line and column, both from 1.
func lineOf(b []byte, offset int64) (line, col int) {
	before := b[:min(int64(len(b)), max(offset, 0))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1)
}
