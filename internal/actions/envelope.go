package actions

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

// The shape of every answer of the agent API (docs/http-api.md, "Envelope").

const (
	// requestIDPattern is what a caller may choose and what the daemon makes.
	requestIDPattern = `^[A-Za-z0-9][A-Za-z0-9_.-]{7,63}$`
	maxRetryAfter    = 86400 // seconds; a service that asks for more is told to us as a day
)

// BaseEnvelope returns the schema of answers outside any action: failures only,
// since what an endpoint of its own answers has its own shape.
func BaseEnvelope() *validate.Schema { return baseEnvelope() }

var baseEnvelope = sync.OnceValue(func() *validate.Schema {
	s, err := validate.CompileSchema("envelope", failureShape("", nil))
	if err != nil {
		return nil // which refuses every answer
	}
	return s
})

func num(i int) json.Number { return json.Number(itoa(i)) }

func closed(required []string, props map[string]any) map[string]any {
	req := make([]any, len(required))
	for i, r := range required {
		req[i] = r
	}
	return map[string]any{"type": "object", "additionalProperties": false, "required": req, "properties": props}
}

func requestIDShape() map[string]any {
	return map[string]any{"type": "string", "pattern": requestIDPattern, "maxLength": num(64)}
}

// envelopeSchema makes the published envelope of one action: two disjoint
// shapes. Its parts are the result schema, which compiled, and ours, so the
// engines take it when the first call begins.
func envelopeSchema(c *Contract) (*validate.Schema, error) {
	props := map[string]any{
		"ok":         map[string]any{"const": true},
		"action":     map[string]any{"const": c.action},
		"request_id": requestIDShape(),
		"data":       map[string]any{"$ref": "#/$defs/data"},
	}
	if len(c.display) > 0 {
		props["display"] = displayShape(c)
	}
	doc := map[string]any{
		"$defs": map[string]any{"data": Rebase(c.resultDoc, "#/$defs/data")},
		"oneOf": []any{
			closed([]string{"ok", "action", "request_id", "data"}, props),
			failureShape(c.action, c.failures),
		},
	}
	return validate.DeferSchema(c.action+".envelope", doc)
}

func displayShape(c *Contract) map[string]any {
	texts := map[string]any{}
	for name, b := range c.display {
		texts[name] = closed([]string{"text", "truncated"}, map[string]any{
			"text":      map[string]any{"type": "string", "maxLength": num(b.Max)},
			"truncated": map[string]any{"type": "boolean"},
		})
	}
	return closed(nil, texts)
}

// Rebase copies a schema and moves its own references to where it will stand
// inside another document: base is that place as a URI fragment, such as
// "#/$defs/data". `$schema` is dropped; only a root has one.
func Rebase(v any, base string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, sub := range v {
			ref, text := sub.(string)
			switch {
			case k == "$ref" && text && strings.HasPrefix(ref, "#/"):
				out[k] = base + ref[1:]
			case k == "$schema":
			case k == "const" || k == "enum":
				out[k] = sub
			default:
				out[k] = Rebase(sub, base)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = Rebase(sub, base)
		}
		return out
	}
	return v
}

// apiFailures are the API's own codes and messages, INVALID_ARGUMENT left out.
var apiFailures = sync.OnceValues(func() (codes, messages []any) {
	for _, c := range fault.Codes() {
		if c == fault.InvalidArgument {
			continue
		}
		codes = append(codes, string(c))
		for _, m := range fault.Messages(c) {
			if !slices.Contains(messages, any(m)) {
				messages = append(messages, m)
			}
		}
	}
	return codes, messages
})

// failureShape is the failing half: known codes with their own messages, and
// fields only for INVALID_ARGUMENT.
func failureShape(action string, own []OwnCode) map[string]any {
	codes, messages := apiFailures()
	codes, messages = slices.Clone(codes), slices.Clone(messages)
	for _, o := range own {
		codes = append(codes, o.Code)
		if !slices.Contains(messages, any(o.Message)) {
			messages = append(messages, o.Message)
		}
	}
	invalid := fault.New(fault.InvalidArgument, nil)
	other := errorShape(map[string]any{"enum": codes}, map[string]any{"enum": messages}, false)
	argument := errorShape(map[string]any{"const": string(invalid.Code())}, map[string]any{"const": invalid.Message()}, true)
	return closed([]string{"ok", "action", "request_id", "error"}, map[string]any{
		"ok":         map[string]any{"const": false},
		"action":     map[string]any{"const": action},
		"request_id": requestIDShape(),
		"error":      map[string]any{"oneOf": []any{other, argument}},
	})
}

func errorShape(code, message map[string]any, fields bool) map[string]any {
	props := map[string]any{
		"code":                code,
		"message":             message,
		"retryable":           map[string]any{"type": "boolean"},
		"request_id":          requestIDShape(),
		"retry_after_seconds": map[string]any{"type": "integer", "minimum": num(0), "maximum": num(maxRetryAfter)},
	}
	if fields {
		props["fields"] = map[string]any{
			"type": "array", "maxItems": num(maxFields),
			"items": closed([]string{"pointer", "reason"}, map[string]any{
				"pointer": map[string]any{"type": "string", "maxLength": num(maxPointer + 1)},
				"reason":  map[string]any{"type": "string", "maxLength": num(maxPointer)},
			}),
		}
	}
	return closed([]string{"code", "message", "retryable", "request_id"}, props)
}
