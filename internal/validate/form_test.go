package validate

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func mustForm(t testing.TB, s FormSpec) *Form {
	t.Helper()
	f, err := CompileForm(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var (
	ndjson   = FormSpec{Kind: FormNDJSON}
	equalsKV = FormSpec{Kind: FormKeyValues, Separator: "="}
	colonKV  = FormSpec{Kind: FormKeyValues, Separator: ": "}
	disk     = FormSpec{Kind: FormColumns, Columns: []string{"name", "size", "used"}}
	version  = FormSpec{Kind: FormLine, Pattern: `^tool (?P<version>[0-9]+\.[0-9]+)(?: \((?P<build>[a-z]+)\))?$`}
	text     = FormSpec{Kind: FormText}
	none     = FormSpec{Kind: FormNone}
	oneJSON  = FormSpec{Kind: FormJSON}
)

func TestFormsAccept(t *testing.T) {
	for _, c := range []struct {
		form     FormSpec
		in, want string
	}{
		{oneJSON, `{"a":[1]}`, `{"a":[1]}`},
		{ndjson, "", `[]`},
		{ndjson, `{"a":1}`, `[{"a":1}]`},
		{ndjson, "{\"a\":1}\n 1.0 \n\"x\\ny\"\r\n", `[{"a":1},1,"x\ny"]`},
		{equalsKV, "", `{}`},
		{equalsKV, "LoadState=loaded\nActiveState=active\n", `{"ActiveState":"active","LoadState":"loaded"}`},
		{equalsKV, "Environment=A=1 B=2\nEmpty=\n space = x ", `{" space ":" x ","Empty":"","Environment":"A=1 B=2"}`},
		{equalsKV, "é=\tü", `{"é":"\tü"}`},
		{colonKV, "Name: web: 1\n:x: y", `{":x":"y","Name":"web: 1"}`},
		{disk, "", `[]`},
		{disk, "sda 10 7\n  sdb\t20   9  \n", `[{"name":"sda","size":"10","used":"7"},{"name":"sdb","size":"20","used":"9"}]`},
		{version, "tool 2.14\n", `{"version":"2.14"}`},
		{version, "tool 2.14 (beta)", `{"build":"beta","version":"2.14"}`},
		{text, "", `""`}, {text, "a\n\tb\x00\u2028\r\n", `"a\n\tb\u0000` + "\u2028" + `\r\n"`},
	} {
		v, present, err := mustForm(t, c.form).Read([]byte(c.in), AnswerLimits())
		if err != nil || !present {
			t.Errorf("%q: %v", c.in, err)
		} else if got := string(Canonical(v)); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
	if v, present, err := mustForm(t, none).Read(nil, AnswerLimits()); v != nil || present || err != nil {
		t.Error("nothing is something")
	}
}

// Every refusal names its rule, line and column, and shows nothing of a value.
func TestFormsRefuse(t *testing.T) {
	small := Limits{Bytes: 200, Depth: 3, Nodes: 7, StringBytes: 9, NameBytes: 4, NumberDigits: 9, Exponent: 9}
	for _, c := range []struct {
		name         string
		form         FormSpec
		in, rule     string
		line, column int
	}{
		{"a banner", ndjson, "Welcome\n{}", ruleSyntax, 1, 1},
		{"two documents in a line", ndjson, "1\n{} {}", ruleTrailing, 2, 4},
		{"a document over two lines", ndjson, "{\"a\":\n1}", ruleSyntax, 1, 6},
		{"a text over two lines", ndjson, "\"a\nb\"", ruleSyntax, 1, 3},
		{"a word broken by the end", ndjson, "tru\ne", ruleSyntax, 1, 1},
		{"an escape broken by the end", ndjson, "\"\\u00\n41\"", ruleSyntax, 1, 2},
		{"a pair broken by the end", ndjson, "\"\\ud83d\n\\ude00\"", ruleSurrogate, 1, 2},
		{"an empty line", ndjson, "1\n\n2", ruleEmptyLine, 2, 1},
		{"a line of spaces", ndjson, "1\n \n2", ruleSyntax, 2, 2},
		{"an empty line at the end", ndjson, "1\n\n", ruleEmptyLine, 2, 1},
		{"only a line end", ndjson, "\n", ruleEmptyLine, 1, 1},
		{"a byte order mark", ndjson, byteOrderMark + "1", ruleBOM, 1, 1},
		{"a mark in the second line", ndjson, "1\n" + byteOrderMark + "1", ruleSyntax, 2, 1},
		{"a duplicate member", ndjson, "1\n{\"a\":1,\"\\u0061\":2}", ruleDuplicate, 2, 8},
		{"invalid UTF-8", ndjson, "1\n\"\xc3\"", ruleUTF8, 2, 2},
		{"a half pair", ndjson, `"\ud800"`, ruleSurrogate, 1, 2},
		{"a leading zero", ndjson, "01", ruleNumber, 1, 1},
		{"too deep", ndjson, "1\n[[[1]]]", ruleDepth, 2, 3},
		{"too many values over all lines", ndjson, "1\n1\n[1,1]\n1\n1", ruleNodes, 5, 1},
		{"a member name too long", ndjson, `{"abcde":1}`, ruleName, 1, 2},
		{"a NUL between lines", ndjson, "1\n\x00\n", ruleSyntax, 2, 1},
		{"another line separator", ndjson, "1\u20281", "", 0, 0},

		{"a banner", equalsKV, "Last login: today\nA=1", ruleSeparator, 1, 1},
		{"a warning at the end", equalsKV, "A=1\nwarning: x\n", ruleSeparator, 2, 1},
		{"a continued value", equalsKV, "A=1\n 2", ruleSeparator, 2, 1},
		{"a repeated key", equalsKV, "A=1\nB=1\nA=1\n", ruleDuplicate, 3, 1},
		{"no key", equalsKV, "=1", ruleEmptyName, 1, 1},
		{"half a separator", colonKV, "A:1", ruleSeparator, 1, 1},
		{"an empty line", equalsKV, "A=1\n\nB=1", ruleEmptyLine, 2, 1},
		{"a carriage return", equalsKV, "A=1\r\nB=2\r\n", ruleControl, 1, 4},
		{"a NUL", equalsKV, "A=1\x00", ruleControl, 1, 4},
		{"an escape sequence", equalsKV, "A=\x1b[31m", ruleControl, 1, 3},
		{"DEL", equalsKV, "A\x7f=", ruleControl, 1, 2},
		{"C1", equalsKV, "A=\u0085", ruleControl, 1, 3},
		{"a line separator", equalsKV, "A=1\u2028B=2", ruleControl, 1, 4},
		{"a vertical tab", equalsKV, "A=1\vB=2", ruleControl, 1, 4},
		{"a byte order mark", equalsKV, byteOrderMark + "A=1", ruleBOM, 1, 1},
		{"invalid UTF-8", equalsKV, "A=1\nB=\xff", ruleUTF8, 2, 3},
		{"an overlong form", equalsKV, "A=\xc0\x80", ruleUTF8, 1, 3},
		{"a surrogate in UTF-8", equalsKV, "A=\xed\xa0\x80", ruleUTF8, 1, 3},
		{"a long key", equalsKV, "ABCDE=1", ruleName, 1, 1},
		{"a long value", equalsKV, "A=1234567890", ruleString, 1, 3},
		{"too many", equalsKV, "A=\nB=\nC=\nD=\nE=\nF=\nG=", ruleNodes, 7, 3},
		{"too long", equalsKV, strings.Repeat("A=1\n", 51), ruleBytes, 51, 1},

		{"a heading with a word more", disk, "NAME SIZE USED %\nsda 10 7", ruleColumns, 1, 16},
		{"an empty cell", disk, "sda 10 7\n20\n", ruleColumns, 2, 3},
		{"a word too many", disk, "sda 10 7 x", ruleColumns, 1, 10},
		{"a line of spaces", disk, "  \t ", ruleColumns, 1, 5},
		{"an empty line", disk, "sda 10 7\n\n", ruleEmptyLine, 2, 1},
		{"a wide space is no gap", disk, "sda\u00a010 7", ruleColumns, 1, 10},
		{"a carriage return", disk, "sda 10 7\r\n", ruleControl, 1, 9},
		{"a NUL", disk, "sda 1\x000 7", ruleControl, 1, 6},
		{"invalid UTF-8", disk, "sda 10 \xff", ruleUTF8, 1, 8},
		{"too many", disk, "a b c\nd e f\n", ruleNodes, 2, 3},
		{"a long word", disk, "0123456789 1 2", ruleString, 1, 1},

		{"nothing", version, "", ruleLine, 1, 1},
		{"a banner", version, "hello\ntool 2.14\n", ruleLine, 1, 1},
		{"a warning after it", version, "tool 2.14\nwarning\n", ruleTrailing, 2, 1},
		{"the same line again", version, "tool 2.14\ntool 2.14\n", ruleTrailing, 2, 1},
		{"an empty line after it", version, "tool 2.14\n\n", ruleEmptyLine, 2, 1},
		{"text before", version, "a tool 2.14", ruleLine, 1, 1},
		{"text after", version, "tool 2.14 or so", ruleLine, 1, 1},
		{"a carriage return", version, "tool 2.14\r\n", ruleControl, 1, 10},
		{"a look-alike", version, "tооl 2.14", ruleLine, 1, 1},
		{"a long group", version, "tool 123456.9000", ruleString, 1, 6},

		{"invalid UTF-8", text, "a\nb\xff", ruleUTF8, 2, 2},
		{"a byte order mark", text, byteOrderMark, ruleBOM, 1, 1},
		{"a long text", text, "0123456789", ruleString, 1, 10},
		{"a space", none, " ", ruleNotEmpty, 1, 1},
		{"a line end", none, "\n", ruleNotEmpty, 1, 1},
	} {
		v, present, err := mustForm(t, c.form).Read([]byte(c.in), small)
		var pe *ParseError
		if !errors.As(err, &pe) || v != nil || present {
			t.Errorf("%s: %q gave %v, %v", c.name, c.in, v, err)
			continue
		}
		if c.line == 0 { // only that it is refused
			continue
		}
		if pe.Rule != c.rule || pe.Line != c.line || pe.Column != c.column {
			t.Errorf("%s: %q: %v, want %s at %d:%d", c.name, c.in, pe, c.rule, c.line, c.column)
		}
		if parseSentence(pe.Rule) == "" {
			t.Errorf("%s has no sentence", pe.Rule)
		}
	}
}

func TestFormsThatDoNotCompile(t *testing.T) {
	for name, s := range map[string]FormSpec{
		"the zero value": {}, "beyond": {Kind: 99},
		"no separator": {Kind: FormKeyValues}, "a line end for a separator": {Kind: FormKeyValues, Separator: "\n"}, "a long separator": {Kind: FormKeyValues, Separator: "= = = = ="},
		"a separator for json": {Kind: FormJSON, Separator: "="}, "columns for text": {Kind: FormText, Columns: []string{"a"}}, "a pattern for none": {Kind: FormNone, Pattern: "^(?P<a>b)$"},
		"no columns": {Kind: FormColumns}, "a column without a name": {Kind: FormColumns, Columns: []string{"a", ""}}, "a column twice": {Kind: FormColumns, Columns: []string{"a", "b", "a"}}, "too many columns": {Kind: FormColumns, Columns: make([]string, 65)},
		"no pattern": {Kind: FormLine}, "not RE2": {Kind: FormLine, Pattern: `^(?P<a>b)(?=c)$`}, "no anchors": {Kind: FormLine, Pattern: `(?P<a>b)`}, "half an anchor": {Kind: FormLine, Pattern: `^(?P<a>b)`},
		"an alternative without anchors": {Kind: FormLine, Pattern: `^(?P<a>b)$|c`}, "anchors by line": {Kind: FormLine, Pattern: `(?m)^(?P<a>b)$`}, "no group": {Kind: FormLine, Pattern: `^b$`}, "a group without a name": {Kind: FormLine, Pattern: `^(?P<a>b)(c)$`},
		"a name twice": {Kind: FormLine, Pattern: `^(?P<a>b)(?P<a>c)$`}, "too large": {Kind: FormLine, Pattern: `^(?P<a>((x{100}){100}){100})$`}, "too long": {Kind: FormLine, Pattern: "^(?P<a>" + strings.Repeat("b", 1024) + ")$"},
	} {
		if f, err := CompileForm(s); err == nil {
			t.Errorf("%s was taken: %+v", name, f)
		}
	}
	for _, f := range []*Form{nil, {}, {spec: FormSpec{Kind: FormLine}}} {
		if v, present, err := f.Read([]byte("x"), AnswerLimits()); err == nil || v != nil || present {
			t.Errorf("%+v reads", f)
		}
	}
	if f := mustForm(t, FormSpec{Kind: FormLine, Pattern: `^(?<a>b)$`}); !slices.Equal(f.groups, []string{"", "a"}) {
		t.Error("the other spelling of a name")
	}
}

// What every form gives is a value that the engines can be given, in time and
// memory that grow with the input only.
func TestFormsAreLinear(t *testing.T) {
	for name, c := range map[string]struct {
		form FormSpec
		line string
	}{
		"key_values": {equalsKV, "key%07d=value\n"}, "columns": {disk, "name%07d 1 2\n"}, "ndjson": {ndjson, "{\"a\":1%07d}\n"}, "text": {text, "line %07d of a text\n"},
		"line": {FormSpec{Kind: FormLine, Pattern: `^(?P<a>(?:[a-z0-9 ]{0,30}[a-y0-9 ]){0,30})$`}, "x%07d"},
	} {
		f := mustForm(t, c.form)
		grow := func(n int) (float64, int) {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, c.line, i)
			}
			in := []byte(b.String())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := f.Read(in, Limits{Bytes: 1 << 30, Depth: 64, Nodes: 1 << 30, StringBytes: 1 << 30, NameBytes: 1024, NumberDigits: 64, Exponent: 64})
			runtime.ReadMemStats(&after)
			if err != nil && name != "line" {
				t.Fatal(err)
			}
			return float64(after.TotalAlloc - before.TotalAlloc), len(in)
		}
		few, short := grow(1000)
		many, long := grow(16000)
		if ratio := (many / float64(long)) / (few / float64(short)); ratio > 2.5 {
			t.Errorf("%s: %.0f bytes of memory for %d, %.0f for %d", name, few, short, many, long)
		}
	}
}

// FuzzForms: no panic, a value or an error, and a value that both engines can
// be given; the refused input's error shows none of it beyond a cut name.
func FuzzForms(f *testing.F) {
	specs := []FormSpec{ndjson, equalsKV, colonKV, disk, version, text, none, oneJSON}
	for _, s := range []string{"", "\n", "A=1\nB=2\n", "Name: x\n", "sda 10 7\n", "tool 2.14 (beta)\n", "{\"a\":1}\n[2]\n", "A=1\r\n", "A\u2028=1", byteOrderMark + "A=1", "\xff=1\n"} {
		f.Add([]byte(s))
	}
	var forms []*Form
	for _, s := range specs {
		forms = append(forms, mustForm(f, s))
	}
	l := Limits{Bytes: 4096, Depth: 8, Nodes: 200, StringBytes: 512, NameBytes: 64, NumberDigits: 20, Exponent: 20}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := string(b)
		for i, form := range forms {
			v, present, err := form.Read(b, l)
			if err != nil {
				pe, ok := err.(*ParseError)
				if !ok || v != nil || present || pe.Line < 1 || pe.Column < 1 || pe.Offset > int64(len(b)) || parseSentence(pe.Rule) == "" {
					t.Fatalf("%+v: %v", specs[i], err)
				}
				continue
			}
			if !isParsed(v, 0) {
				t.Fatalf("%+v: %T", specs[i], v)
			}
			checkForm(t, specs[i], before, v)
		}
		if string(b) != before {
			t.Fatal("the input was written to")
		}
	})
}

// checkForm writes a value back by another way and compares with what was read.
func checkForm(t *testing.T, s FormSpec, in string, v any) {
	body := strings.TrimSuffix(in, "\n")
	switch s.Kind {
	case FormText:
		if v != in {
			t.Fatalf("%q became %q", in, v)
		}
	case FormNone:
		if in != "" {
			t.Fatalf("%q is none", in)
		}
	case FormKeyValues:
		m := v.(map[string]any)
		rest := strings.Split(body, "\n")
		if in == "" {
			rest = nil
		}
		if len(rest) != len(m) {
			t.Fatalf("%q: %d of %d lines", in, len(m), len(rest))
		}
		for _, line := range rest {
			key, value, _ := strings.Cut(line, s.Separator)
			if m[key] != value {
				t.Fatalf("%q: %q", in, line)
			}
		}
	case FormColumns:
		for i, row := range v.([]any) {
			line := strings.FieldsFunc(strings.Split(body, "\n")[i], func(r rune) bool { return r == ' ' || r == '\t' })
			for j, name := range s.Columns {
				if len(line) != len(s.Columns) || row.(map[string]any)[name] != line[j] {
					t.Fatalf("%q: %v", in, row)
				}
			}
		}
	case FormLine:
		m := v.(map[string]any)
		back := "tool " + m["version"].(string)
		if b, ok := m["build"]; ok {
			back += " (" + b.(string) + ")"
		}
		if back != body {
			t.Fatalf("%q: %v", in, m)
		}
	}
}
