package compare

import (
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// sameValue says whether two value nodes give the same value: an optional that
// is false, and a constant around a plain value, say nothing.
func sameValue(a, b *strictyaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return validate.Equal(plainValue(a.Value()), plainValue(b.Value()))
}

func plainValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, from := v["from"].(string); from && len(v) == 2 && v["optional"] == false {
			return map[string]any{"from": v["from"]}
		}
		if c, is := v["const"]; is && len(v) == 1 {
			switch c.(type) {
			case map[string]any, []any:
				return v // what is inside a constant is not a value node
			}
			return c
		}
		out := map[string]any{}
		for k, sub := range v {
			out[k] = plainValue(sub)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = plainValue(sub)
		}
		return out
	}
	return v
}

// usualPick are the words of a pick that say what holds without them.
var usualPick = map[string]any{
	"base64": false, "last_segment": false, "trim": false, "lower": false, "integer": false, "text": false, "optional": false,
	"null": "refuse", "strip_prefix": "", "prefix": "",
}

// samePick says whether two picks take the same value.
func samePick(a, b *strictyaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return validate.Equal(plainPick(a.Value()), plainPick(b.Value()))
}

func plainPick(v any) any {
	switch v := v.(type) {
	case string:
		return map[string]any{"at": v}
	case map[string]any:
		out := map[string]any{}
		for k, sub := range v {
			if usual, has := usualPick[k]; !has || usual != sub {
				out[k] = sub
			}
		}
		return out
	}
	return v
}
