package vault

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"chatelaine/internal/validate"
)

func TestReadObject(t *testing.T) {
	m, err := readObject([]byte(` {"a":"x\u00e9\ud83d\ude00\n", "n":-1.5e+3,"o":{"p":[1,{}]},"l":["q"],"t":true,"f":false,"z":null} `))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]jsonValue{
		"a": {jsonString, []byte("xé😀\n")}, "n": {jsonNumber, []byte("-1.5e+3")}, "o": {jsonObject, []byte(`{"p":[1,{}]}`)},
		"l": {jsonArray, []byte(`["q"]`)}, "t": {jsonBool, []byte("true")}, "f": {jsonBool, []byte("false")}, "z": {jsonNull, []byte("null")},
	}
	if got := fmt.Sprint(map[string]jsonValue(m)); got != fmt.Sprint(want) {
		t.Errorf("got %s, want %v", got, want)
	}
	text, _ := m.str("a")
	m.wipe()
	if strings.Trim(string(text), "\x00") != "" {
		t.Errorf("%q is left after the wipe", text)
	}
}

func TestReadObjectRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, tokenAnswerDepth+1) + "1" + strings.Repeat("}", tokenAnswerDepth+1)
	for name, text := range map[string]string{
		"nothing": "", "a page": "<html>token</html>", "a list": "[]", "a string": `"a"`, "two values": "{}{}", "a tail": "{} x",
		"a byte order mark": "\xef\xbb\xbf{}", "half": `{"access_token":"abc`, "a duplicate": `{"a":1,"a":2}`,
		"a duplicate in an escape": `{"a":1,"\u0061":2}`, "a duplicate below": `{"a":{"b":1,"b":2}}`, "a duplicate in a list": `{"a":[{"b":1,"b":2}]}`,
		"half a surrogate": `{"a":"\ud800"}`, "a surrogate and a letter": `{"a":"\ud800\u0041"}`, "bad UTF-8": "{\"a\":\"\xff\"}",
		"a control character": "{\"a\":\"\n\"}", "a bad escape": `{"a":"\x41"}`, "a leading zero": `{"a":01}`, "no digits": `{"a":-}`,
		"a broken fraction": `{"a":1.}`, "a broken exponent": `{"a":1e}`, "a plus": `{"a":+1}`, "infinity": `{"a":Infinity}`,
		"a long number": `{"a":` + strings.Repeat("1", tokenNumberBytes+1) + "}", "a comma too many": `{"a":1,}`, "no colon": `{"a" 1}`,
		"no name": `{1:1}`, "too deep": deep, "too deep a list": `{"a":` + strings.Repeat("[", tokenAnswerDepth) + strings.Repeat("]", tokenAnswerDepth) + "}",
		"a long name": `{"` + strings.Repeat("n", tokenNameBytes+1) + `":1}`, "too many": `{"a":[1` + strings.Repeat(",1", tokenAnswerNodes) + "]}",
		"too large": `{"a":"` + strings.Repeat("x", tokenAnswerBytes) + `"}`, "a short escape": `{"a":"\u12`,
	} {
		if m, err := readObject([]byte(text)); err == nil {
			t.Errorf("%s: read as %v", name, m)
		}
	}
}

// FuzzReadObject holds the reader against the one that the gateway reads answers
// with: what is taken here, that one takes, and gives the same values.
func FuzzReadObject(f *testing.F) {
	for _, s := range []string{
		`{"access_token":"2YotnFZFEjr1zCsicMWpAA","token_type":"example","expires_in":3600,"refresh_token":"tGzv3JOkF0XG5Qx2TlKWIA"}`,
		`{"error":"invalid_request"}`, `{"a":{"b":[1,2,{"c":null}]},"d":"\ud83d\ude00\/"}`, `{"a":1,"a":2}`, "{} ", `{"a":1e99}`, `{"n":-0.0E+1}`,
	} {
		f.Add([]byte(s))
	}
	limits := validate.AnswerLimits()
	limits.Exponent = 1 << 62 // numbers are only ever read as a few digits here
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readObject(b)
		v, perr := validate.Parse(b, limits)
		if err != nil {
			if _, object := v.(map[string]any); perr == nil && object && within(v, 1) {
				t.Fatalf("only the other reader takes %q", b)
			}
			return
		}
		o, ok := v.(map[string]any)
		if perr != nil || !ok || len(o) != len(m) {
			t.Fatalf("%q: %v, %T", b, perr, v)
		}
		for name, got := range m {
			if !same(got, o[name]) {
				t.Fatalf("%q: %q is %d %q, there %v", b, name, got.kind, got.text, o[name])
			}
		}
	})
}

// within says whether a value keeps to the limits of this package, which are
// narrower.
func within(v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if !within(inner, depth+1) {
				return false
			}
		}
		return depth <= tokenAnswerDepth
	case []any:
		for _, inner := range v {
			if !within(inner, depth+1) {
				return false
			}
		}
		return depth <= tokenAnswerDepth
	case json.Number:
		return len(v) <= tokenNumberBytes
	}
	return true
}

func same(got jsonValue, want any) bool {
	switch want := want.(type) {
	case string:
		return got.kind == jsonString && string(got.text) == want
	case json.Number:
		return got.kind == jsonNumber && string(got.text) == string(want)
	case bool:
		return got.kind == jsonBool && string(got.text) == fmt.Sprint(want)
	case nil:
		return got.kind == jsonNull
	case map[string]any:
		inner, err := readObject(got.text)
		return got.kind == jsonObject && err == nil && len(inner) == len(want)
	case []any:
		return got.kind == jsonArray
	}
	return false
}
