package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The tests of this file guard checks that no other test would miss: each was
// found by switching the check off.

func TestEqualNeverCrossesTypes(t *testing.T) {
	zeros := []any{nil, false, "", json.Number(""), []any{}, map[string]any{}}
	for i, a := range zeros {
		for j, b := range zeros {
			if Equal(a, b) != (i == j) {
				t.Errorf("Equal(%#v, %#v) is %v", a, b, i != j)
			}
		}
	}
	if Equal(json.Number(""), nil) || Compare("", "0") == 0 {
		t.Error("no text is a number")
	}
	if _, ok := parseDecimal("1e1234567"); ok {
		t.Error("an exponent of seven characters is read")
	}
}

func TestNumbersEndWhereTheyMust(t *testing.T) {
	for _, in := range []string{`1-2`, `1+2`, `[1-2]`, `1_0`, `1.`, `1x`} {
		var pe *ParseError
		if _, err := Parse([]byte(in), AnswerLimits()); !errors.As(err, &pe) || pe.Rule != ruleNumber {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// A body is often a part of a larger buffer; what lies behind it is not read.
func TestAnEscapeDoesNotReadBehindTheInput(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6} {
		whole := []byte(`"\u0041"`)
		if _, err := Parse(whole[:n:n], AnswerLimits()); err == nil {
			t.Errorf("%s was read", whole[:n])
		}
		_, err := Parse(whole[:n], AnswerLimits())
		if pe, ok := errors.AsType[*ParseError](err); !ok || pe.Offset > int64(n) {
			t.Errorf("%s: %v", whole[:n], err)
		}
	}
}

func TestNamesAreBoundedUnderBothLimits(t *testing.T) {
	for _, l := range []Limits{AnswerLimits(), CallerLimits()} {
		for n, want := range map[int]bool{1024: true, 1025: false} {
			if _, err := Parse([]byte(`{"`+strings.Repeat("n", n)+`":1}`), l); (err == nil) != want {
				t.Errorf("a name of %d bytes: %v", n, err)
			}
		}
	}
}

func TestFormatsAtTheirEdges(t *testing.T) {
	label := strings.Repeat("a", 60) + "."
	for in, format := range map[string]string{
		"2026-01-05T10:00:00+01": "date-time", "2026-01-05T10:00:00+": "date-time", "0000-01-01T00:00:00+01:00": "date-time", "9999-12-31T23:59:59-01:00": "date-time",
		"https://example.test/?a=%zz": "uri", "https://example.test/?a=%4": "uri", "1http://x": "uri", "https://[": "uri",
		strings.Repeat("l", 60) + "@" + strings.Repeat(label, 3) + strings.Repeat("b", 20): "email", strings.Repeat("l", 65) + "@example.test": "email",
	} {
		if formats[format](in) {
			t.Errorf("%q passes as %s", in, format)
		}
	}
	if !isEmail(strings.Repeat("l", 64) + "@example.test") {
		t.Error("64 bytes before the @ are refused")
	}
}

func TestGuardRefusesBeforeAnEngineDoes(t *testing.T) {
	for schema, rule := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"null"},"b":{"$ref":"/properties/a"}}}`: ruleRef,
		`{"$ref":"#/$defs/a%62","$defs":{"a%62":{"type":"null"},"ab":{"type":"null"}}}`:     ruleRef,
		`{"$ref":"#a","$defs":{"a":{"type":"null"}}}`:                                       ruleRef,
		`{"type":"object","dependentRequired":["a"]}`:                                       ruleValue,
		`{"type":[{},{}]}`: ruleValue, `{"type":{}}`: ruleValue, `{"enum":1}`: ruleEmpty, `{"allOf":{}}`: ruleEmpty, `{"$ref":1}`: ruleRef,
	} {
		if found := guardSchema(mustParse(t, schema)); len(found) == 0 || found[0].Rule != rule {
			t.Errorf("%s: %v, want %s", schema, found, rule)
		}
	}
	if got := keywordHint("MAXLENGTH"); got != "did you mean maxLength?" {
		t.Error(got)
	}
}

func TestPatternsAtTheirEdges(t *testing.T) {
	long := func(n int) string { return "^" + strings.Repeat("a", n-2) + "$" }
	for p, why := range map[string]string{
		"": "1 to 1024", long(1025): "1 to 1024", "^(a$": "does not compile", "^|$": "begin with ^", "a": "begin with ^", "^a\x7f$": "control", "^[a\x7f]$": "control",
		`^\D$`: "differ between dialects", `^\W$`: "differ between dialects", `^\s$`: "differ between dialects", `^\S$`: "differ between dialects", `^[\D]$`: "differ between dialects",
		`^[]a]$`: "empty class", `^[a&&b]$`: "operator elsewhere", `^[+--]$`: "operator elsewhere", `^[a~~]$`: "operator elsewhere",
	} {
		if found := strings.Join(LintPattern(p), "; "); !strings.Contains(found, why) {
			t.Errorf("%.30q: %q, want %q", p, found, why)
		}
	}
	if found := LintPattern(long(1024)); len(found) > 0 {
		t.Errorf("1024 bytes: %v", found)
	}
	for p, want := range map[string]int{"(": -1, "^ab*$": -1, "^(a|b*)$": -1, "^(ab|c)$": 2, "^a{2,5}$": 5, "abc": -1, "^(a+){2}$": -1} {
		if got := longestMatch(p); got != want {
			t.Errorf("%s: longest match %d, want %d", p, got, want)
		}
	}
	for p, want := range map[string]bool{"(": false, "^[a-z]$": true, "^[\u4e00-\u5000]{1,3}$": false, "^[\u4e00-\u4eff]{1,3}$": true} {
		if isWordPattern(p) != want {
			t.Errorf("%s: words only is %v", p, !want)
		}
	}
}

func TestKeySetsAtTheirEdges(t *testing.T) {
	key := jwkOf(t, "EdDSA", "k", testKeys()["EdDSA"].Public())
	many := func(n int) []byte {
		keys := make([]map[string]any, n)
		for i := range keys {
			k := map[string]any{}
			for name, v := range key {
				k[name] = v
			}
			k["kid"] = fmt.Sprint("k", i)
			keys[i] = k
		}
		return jwks(keys...)
	}
	if _, err := ParseKeySet(many(keySetKeys)); err != nil {
		t.Error(err)
	}
	modulus := strings.Repeat("_", 1500) // 9,000 bits
	for in, want := range map[string]string{
		string(many(keySetKeys + 1)): "lists 1 to 64 keys", `{"keys":[],"keys":[]}`: "strict JSON", `{"keys":["x"]}`: "is no object", `{"keys":7}`: "no JWK Set", `{"keys":[{"kty":"oct"}]}`: "symmetric",
		`{"keys":[{"kty":"RSA","alg":"RS256","n":"` + modulus + `","e":"AQAB"}]}`: "public key",
	} {
		if _, err := ParseKeySet([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", in, err, want)
		}
	}
}

func TestFormsAtTheirEdges(t *testing.T) {
	columns := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint("c", i)
		}
		return out
	}
	for _, c := range []struct {
		names []string
		ok    bool
	}{{columns(formColumns), true}, {columns(formColumns + 1), false}, {[]string{strings.Repeat("n", nameBytes)}, true}, {[]string{strings.Repeat("n", nameBytes+1)}, false}} {
		if _, err := CompileForm(FormSpec{Kind: FormColumns, Columns: c.names}); (err == nil) != c.ok {
			t.Errorf("%d columns: %v", len(c.names), err)
		}
	}
	bare := FormSpec{Kind: FormLine, Pattern: "^o(?P<more>x)?k$"}
	for _, c := range []struct {
		form FormSpec
		in   string
	}{{ndjson, ""}, {equalsKV, ""}, {disk, ""}, {bare, "ok"}} {
		l := AnswerLimits()
		l.Nodes = 0
		if _, _, err := mustForm(t, c.form).Read([]byte(c.in), l); err == nil {
			t.Errorf("%+v: a value where none may be", c.form)
		}
	}
	l := AnswerLimits()
	l.Depth = 0
	if _, _, err := mustForm(t, ndjson).Read(nil, l); err == nil {
		t.Error("a list where no depth is allowed")
	}
}
