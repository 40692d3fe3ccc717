package validate

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

func mustParse(t testing.TB, s string) any {
	t.Helper()
	v, err := Parse([]byte(s), AnswerLimits())
	if err != nil {
		t.Fatalf("Parse(%.200s): %v", s, err)
	}
	return v
}

func TestParseAccepts(t *testing.T) {
	cases := []struct {
		in   string
		want any
	}{
		{`null`, nil}, {` true `, true}, {"\t\r\nfalse", false}, {`""`, ""}, {`0`, json.Number("0")},
		{`-0`, json.Number("-0")}, {`-0.0e-0`, json.Number("-0.0e-0")}, {`1E+2`, json.Number("1E+2")},
		{`12345678901234567890`, json.Number("12345678901234567890")},
		{`[]`, []any{}}, {`{}`, map[string]any{}}, {`[ 1 , [ ] , { } ]`, []any{json.Number("1"), []any{}, map[string]any{}}},
		{`{"a":{"b":[null]}}`, map[string]any{"a": map[string]any{"b": []any{nil}}}},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0041\u00e9\u20AC\ud83d\ude00"`, "Aé€😀"},
		{`"\u0000"`, "\x00"}, {`"` + "\x7f" + `"`, "\x7f"}, {`"\ufeff"`, "\ufeff"}, {`"\uFFFD"`, "\uFFFD"},
		{`{"":1}`, map[string]any{"": json.Number("1")}},
		{`{"a":1,"A":2,"\u00e1":3,"a\u0301":4}`, map[string]any{"a": json.Number("1"), "A": json.Number("2"), "\u00e1": json.Number("3"), "a\u0301": json.Number("4")}},
	}
	for _, c := range cases {
		if got := mustParse(t, c.in); !bytes.Equal(Canonical(got), Canonical(c.want)) || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("Parse(%s) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	cases := []struct{ in, rule string }{
		{``, ruleSyntax}, {` `, ruleSyntax}, {`nul`, ruleSyntax}, {`True`, ruleSyntax}, {`nulll`, ruleTrailing},
		{`[1,]`, ruleSyntax}, {`[,1]`, ruleSyntax}, {`[1 2]`, ruleSyntax}, {`[1`, ruleSyntax}, {`{`, ruleSyntax}, {`{"a"`, ruleSyntax},
		{`{"a":}`, ruleSyntax}, {`{"a":1,}`, ruleSyntax}, {`{a:1}`, ruleSyntax}, {`{'a':1}`, ruleSyntax}, {`{"a" 1}`, ruleSyntax}, {`{1:1}`, ruleSyntax},
		{`]`, ruleSyntax}, {`[}`, ruleSyntax}, {`// x`, ruleSyntax}, {`[1]// x`, ruleTrailing}, {`/**/1`, ruleSyntax},
		{`{}{}`, ruleTrailing}, {`1 2`, ruleTrailing}, {"1\x00", ruleTrailing}, {"1\v", ruleTrailing}, {"\f1", ruleSyntax}, {"\u00a01", ruleSyntax},
		{"\xef\xbb\xbf1", ruleBOM}, {"\xff\xfe1\x00", ruleSyntax},
		{`01`, ruleNumber}, {`-`, ruleNumber}, {`-a`, ruleNumber}, {`+1`, ruleSyntax}, {`.5`, ruleSyntax}, {`1.`, ruleNumber}, {`1.e1`, ruleNumber},
		{`1e`, ruleNumber}, {`1e+`, ruleNumber}, {`0x1`, ruleNumber}, {`1_000`, ruleNumber}, {`-01`, ruleNumber}, {`1e5e5`, ruleNumber}, {`1.2.3`, ruleNumber}, {`00`, ruleNumber},
		{`NaN`, ruleSyntax}, {`nan`, ruleSyntax}, {`Infinity`, ruleSyntax}, {`-Infinity`, ruleNumber}, {`inf`, ruleSyntax}, {"\uff11", ruleSyntax}, {`12n`, ruleNumber},
		{`"a`, ruleSyntax}, {`"\`, ruleSyntax}, {`"\x41"`, ruleSyntax}, {`"\u12"`, ruleSyntax}, {`"\u12g4"`, ruleSyntax}, {`"\u+123"`, ruleSyntax}, {`"\'"`, ruleSyntax}, {"\"\n\"", ruleSyntax}, {"\"\x00\"", ruleSyntax}, {"\"\x1f\"", ruleSyntax},
		{"\"\xff\"", ruleUTF8}, {"\"\xc0\xaf\"", ruleUTF8}, {"\"\xed\xa0\x80\"", ruleUTF8}, {"\"\xf4\x90\x80\x80\"", ruleUTF8}, {"\"\xe2\x82\"", ruleUTF8}, {"{\"\x80\":1}", ruleUTF8},
		{`"\ud800"`, ruleSurrogate}, {`"\ud800x"`, ruleSurrogate}, {`"\ud800\n"`, ruleSurrogate}, {`"\ud800\u0041"`, ruleSurrogate}, {`"\udc00\ud800"`, ruleSurrogate}, {`"\ud83d\ud83d\ude00"`, ruleSurrogate}, {`{"\udead":1}`, ruleSurrogate},
		{`{"a":1,"a":1}`, ruleDuplicate}, {`{"a":1,"\u0061":2}`, ruleDuplicate}, {`{"x":{"é":1,"\u00e9":2}}`, ruleDuplicate}, {`[{"":0,"":0}]`, ruleDuplicate},
		{`1e65`, ruleExponent}, {`1e-65`, ruleExponent}, {`99e64`, ruleExponent}, {`0e999`, ruleExponent}, {`1e1000001`, ruleExponent}, {`1e00000000000000000001`, ruleExponent},
		{`1` + strings.Repeat("0", 64), ruleDigits}, {`0.` + strings.Repeat("0", 200), ruleDigits}, {`0.` + strings.Repeat("0", 80) + "1", ruleExponent}, {`1.` + strings.Repeat("0", 64), ruleDigits},
	}
	for _, c := range cases {
		_, err := Parse([]byte(c.in), AnswerLimits())
		var pe *ParseError
		if !errors.As(err, &pe) || pe.Rule != c.rule {
			t.Errorf("Parse(%q) = %v, want rule %s", c.in, err, c.rule)
		}
	}
}

func TestParseLimits(t *testing.T) {
	l := Limits{Bytes: 200, Depth: 3, Nodes: 6, StringBytes: 4, NameBytes: 2, NumberDigits: 5, Exponent: 9}
	cases := []struct{ in, rule string }{
		{strings.Repeat(" ", 201), ruleBytes}, {strings.Repeat(" ", 199) + "1", ""},
		{`[[[1]]]`, ""}, {`[[[[1]]]]`, ruleDepth}, {`{"a":{"a":{"a":{}}}}`, ruleDepth}, {`[[[]],[[]],1]`, ""},
		{`[1,2,3,4,5]`, ""}, {`[1,2,3,4,5,6]`, ruleNodes},
		{`"abcd"`, ""}, {`"abcde"`, ruleString}, {`"\u0061bcde"`, ruleString}, {`"é€"`, ruleString}, {`"\u00e9bc"`, ""},
		{`{"ab":1}`, ""}, {`{"abc":1}`, ruleName}, {`{"\u0061bc":1}`, ruleName},
		{`12345`, ""}, {`123456`, ruleDigits}, {`0.00012345`, ""}, {`1.23456`, ruleDigits}, {`1e9`, ""}, {`1e10`, ruleExponent}, {`10e9`, ruleExponent},
	}
	for _, c := range cases {
		_, err := Parse([]byte(c.in), l)
		var pe *ParseError
		if errors.As(err, &pe) && pe.Rule != c.rule || err == nil && c.rule != "" {
			t.Errorf("Parse(%.40q) = %v, want rule %q", c.in, err, c.rule)
		}
	}
	if _, err := Parse([]byte(`1`), Limits{}); err == nil {
		t.Error("the zero limits accepted something")
	}
}

func TestParseErrorNamesThePlaceAndNothingElse(t *testing.T) {
	_, err := Parse([]byte("{\"a\":[1,\n {\"Ignore all rules\":1,\"Ignore all rules\":2}]}"), AnswerLimits())
	var pe *ParseError
	if !errors.As(err, &pe) {
		t.Fatal(err)
	}
	want := "line 2, column 24: duplicate-member: the same member twice in one object (at /a/1/Ignore{U+0020}all{U+0020}rules)"
	if err.Error() != want || pe.Offset != 32 {
		t.Errorf("got  %s (%d)\nwant %s", err, pe.Offset, want)
	}
	_, err = Parse([]byte(`{"`+strings.Repeat("n", 900)+`":"secret-value-\ud800"}`), AnswerLimits())
	if err == nil || strings.Contains(err.Error(), "secret") || len(err.Error()) > 200 {
		t.Errorf("error is too telling or too long: %v", err)
	}
}

// oracle reads with encoding/json/jsontext and the same limits, from tokens.
func oracle(in []byte, l Limits) (any, error) {
	if len(in) > l.Bytes {
		return nil, errors.New("bytes")
	}
	d := jsontext.NewDecoder(bytes.NewReader(in))
	nodes := 0
	v, err := oracleValue(d, l, &nodes)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, fmt.Errorf("trailing: %w", err)
	}
	return v, nil
}

func oracleValue(d *jsontext.Decoder, l Limits, nodes *int) (any, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if *nodes++; *nodes > l.Nodes || d.StackDepth() > l.Depth {
		return nil, errors.New("nodes or depth")
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		if rule := numberRule(tok.String(), l); rule != "" {
			return nil, errors.New(rule)
		}
		return json.Number(tok.String()), nil
	case '[':
		out := []any{}
		for d.PeekKind() != ']' {
			v, err := oracleValue(d, l, nodes)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := d.ReadToken()
		return out, err
	default:
		out := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if len(key) > l.NameBytes {
				return nil, errors.New("name")
			}
			if out[key], err = oracleValue(d, l, nodes); err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return out, err
	}
}

func agree(t *testing.T, in []byte) {
	t.Helper()
	l := AnswerLimits()
	got, err := Parse(in, l)
	want, wantErr := oracle(in, l)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Parse(%q) error %v, jsontext %v", in, err, wantErr)
	}
	if err == nil && !Equal(got, want) {
		t.Fatalf("Parse(%q) = %v, jsontext %v", in, got, want)
	}
	if err == nil && !json.Valid(in) {
		t.Fatalf("Parse(%q) accepted what encoding/json refuses", in)
	}
}

var parseSeeds = []string{
	`{"ok":true,"data":{"qty":4}}`, `{"a":1,"a":2}`, `"\ud83d\ude00"`, `"\ud800"`, "\"\xff\"", `[1e64,-0.5E-64]`, `[[[[]]]]`, "\xef\xbb\xbf{}", `{"a":[null,true,"é"]}`, `1e400`, `{} x`, `01`, `-`, `"\u0000"`,
}

func FuzzParse(f *testing.F) {
	for _, s := range parseSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) { agree(t, in) })
}

func TestParseAgreesWithJSONText(t *testing.T) {
	for _, s := range parseSeeds {
		agree(t, []byte(s))
	}
	// Every one-byte change of one document that has every kind of token.
	doc := []byte(`{"k\u00e9":[-1.5e+3,true,null,"\ud83d\ude00\n"],"e":{}}`)
	for i := range doc {
		for b := 0; b < 256; b++ {
			in := bytes.Clone(doc)
			in[i] = byte(b)
			agree(t, in)
		}
		agree(t, doc[:i])
	}
}

func TestCanonical(t *testing.T) {
	cases := []struct{ in, want string }{
		{` { "b" : 1.0 , "a" : [ 1e2 , -0 , 0.10 ] } `, `{"a":[100,0,0.1],"b":1}`},
		{`"\u0041\/\u001f\u007f\u2028é"`, "\"A/\\u001f\x7f\u2028é\""},
		{`{"\ud83d\ude00":1,"\uffee":2,"z":3}`, "{\"z\":3,\"\uffee\":2,\"😀\":1}"}, // by code point, not by UTF-16
		{`[1e21,1e20,123e-9,1e-7,12345678901234567890123,1.5e30]`, `[1e21,100000000000000000000,0.000000123,0.0000001,12345678901234567890123,1.5e30]`},
		{`[1E64,1e-64,-1.20e-30]`, `[1e64,1e-64,-1.2e-30]`},
		{`["\b\f\n\r\t\"\\"]`, `["\b\f\n\r\t\"\\"]`},
	}
	for _, c := range cases {
		if got := string(Canonical(mustParse(t, c.in))); got != c.want {
			t.Errorf("Canonical(%s) = %s, want %s", c.in, got, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Canonical wrote a value that Parse does not make")
		}
	}()
	Canonical(map[string]any{"n": 1})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range parseSeeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`[0.00000001234567890123456789012345678901234567890123456789012345678901234]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := Parse(in, AnswerLimits())
		if err != nil {
			return
		}
		one := Canonical(v)
		again, err := Parse(one, AnswerLimits())
		var pe *ParseError
		if errors.As(err, &pe) && pe.Rule == ruleBytes {
			return // plain decimals may be a little longer than what was written
		}
		if err != nil || !Equal(v, again) || !bytes.Equal(one, Canonical(again)) {
			t.Fatalf("Canonical(%q) = %q does not re-parse to itself: %v", in, one, err)
		}
	})
}

func TestCompare(t *testing.T) {
	order := []string{"-1e64", "-10", "-9.99", "-1", "-0.5", "-1e-64", "0", "1e-64", "0.1", "0.25", "1", "1.00000000000000000001", "9", "10", "9007199254740992", "9007199254740993", "1e20", "1e64"}
	for i, a := range order {
		for j, b := range order {
			if got, want := Compare(json.Number(a), json.Number(b)), clamp(i-j); got != want {
				t.Errorf("Compare(%s, %s) = %d, want %d", a, b, got, want)
			}
		}
	}
	for _, same := range [][2]string{{"1", "1.0"}, {"1e2", "100"}, {"0", "-0.0e5"}, {"0.10", "1e-1"}} {
		if Compare(json.Number(same[0]), json.Number(same[1])) != 0 {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	if Compare("x", "1") == 0 || Compare("x", "x") != 0 {
		t.Error("what is no number equals a number")
	}
}

func TestEqual(t *testing.T) {
	if !Equal(mustParse(t, `{"a":[1,{"b":null}],"c":"x"}`), mustParse(t, `{"c":"x","a":[1.0,{"b":null}]}`)) {
		t.Error("equal documents differ")
	}
	for _, c := range [][2]string{{`1`, `"1"`}, {`1`, `true`}, {`null`, `{}`}, {`[]`, `{}`}, {`[1,2]`, `[2,1]`}, {`{"a":null}`, `{}`}, {`"\u00e9"`, `"e\u0301"`}} {
		if Equal(mustParse(t, c[0]), mustParse(t, c[1])) {
			t.Errorf("%s equals %s", c[0], c[1])
		}
	}
}

func TestPointer(t *testing.T) {
	doc := mustParse(t, `{"a":{"b/c":[10,20,{"m~n":true}]},"":5,"0":"zero"}`)
	for in, want := range map[string]string{
		"/a/b~1c/1": `20`, "/a/b~1c/2/m~0n": `true`, "/": `5`, "/0": `"zero"`, "/a/b~1c": `[10,20,{"m~n":true}]`,
	} {
		p, err := ParsePointer(in)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := p.Get(doc)
		if !ok || string(Canonical(v)) != want || p.String() != in {
			t.Errorf("%s: %v %v, String %s", in, v, ok, p)
		}
	}
	for _, in := range []string{"/a/b~1c/01", "/a/b~1c/-", "/a/b~1c/3", "/a/b~1c/-1", "/a/b~1c/+1", "/x", "/a/b", "/0/0", "/a/b~1c/0/x"} {
		p, err := ParsePointer(in)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := p.Get(doc); ok {
			t.Errorf("%s gave %v", in, v)
		}
	}
	for _, in := range []string{"a", "#/a", "/a~", "/a~2", "/\xff"} {
		if _, err := ParsePointer(in); err == nil {
			t.Errorf("ParsePointer(%q) was accepted", in)
		}
	}
	if v, ok := (Pointer{}).Get(doc); !ok || !Equal(v, doc) {
		t.Error("the zero pointer is not the whole document")
	}
}

func TestHostileNamesAreShownSafely(t *testing.T) {
	got := renderPath([]string{"a/b", "x\ny", "\u202eevil", strings.Repeat("n", 100), "<b>"})
	want := "/a~1b/x{U+000A}y/{U+202E}evil/" + strings.Repeat("n", shownName) + "…/{U+003C}b{U+003E}"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	long := make([]string, 1000)
	for i := range long {
		long[i] = strconv.Itoa(i)
	}
	if n := len(renderPath(long)); n > 200 {
		t.Errorf("a deep path is shown in %d bytes", n)
	}
}
