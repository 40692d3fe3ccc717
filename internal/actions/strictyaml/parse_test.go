package strictyaml

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// refuse checks that text is refused with exactly these lines.
func refuse(t *testing.T, text string, want ...string) {
	t.Helper()
	f := Parse("x.yaml", []byte(text), Limits{})
	got := strings.Split(f.Problems().Error(), "\n")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\n got %q\nwant %q", text, got, want)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"a: 012\n", []string{"x.yaml:1:4: 012 is a number in a spelling that JSON does not have"}},
		{"a: 1_000\n", []string{"x.yaml:1:4: 1_000 is a number in a spelling that JSON does not have"}},
		{"a: .inf\nb: -.Inf\nc: .nan\n", []string{
			"x.yaml:1:4: .inf is a number in a spelling that JSON does not have",
			"x.yaml:2:4: -.Inf is a number in a spelling that JSON does not have",
			"x.yaml:3:4: .nan is a number in a spelling that JSON does not have"}},
		{"a: 0x1f\nb: 0o14\nc: +1\nd: 1.\ne: .5\nf: 0b1\n", []string{
			"x.yaml:1:4: 0x1f is a number in a spelling that JSON does not have",
			"x.yaml:2:4: 0o14 is a number in a spelling that JSON does not have",
			"x.yaml:3:4: +1 is a number in a spelling that JSON does not have",
			"x.yaml:4:4: 1. is a number in a spelling that JSON does not have",
			"x.yaml:5:4: .5 is a number in a spelling that JSON does not have",
			"x.yaml:6:4: 0b1 is a number in a spelling that JSON does not have"}},
		{"a: ~\nb: NULL\nc: True\nd: FALSE\n", []string{
			"x.yaml:1:4: ~ is a spelling that JSON does not have",
			"x.yaml:2:4: NULL is a spelling that JSON does not have",
			"x.yaml:3:4: True is a spelling that JSON does not have",
			"x.yaml:4:4: FALSE is a spelling that JSON does not have"}},
		{"a: 1\nb: 2\na: 3\nb: 4\n", []string{
			`x.yaml:3:1: the key "a" is written twice`, `x.yaml:4:1: the key "b" is written twice`}},
		{"a: {b: 1, \"b\": 2}\n", []string{`x.yaml:1:11: the key "b" is written twice`}},
		{"a: &x 1\nb: *x\nc: !!str 3\n<<: {d: 1}\n", []string{
			"x.yaml:1:4: an anchor", "x.yaml:2:4: an alias", "x.yaml:3:4: a tag", "x.yaml:4:1: a merge key"}},
		{"a: 1\n---\nb: 2\n", []string{"x.yaml:2:1: a second document"}},
		{"a: 1\n...\n", []string{"x.yaml:2:1: an end-of-document mark"}},
		{"%YAML 1.2\n---\na: 1\n", []string{"x.yaml:1:1: a directive", "x.yaml:2:1: a second document"}},
		{"? a\n: b\n", []string{"x.yaml:1:1: a key written with ?"}},
		{"a:\tb\nc: d\t\n", []string{"x.yaml:1:3: a tab", "x.yaml:2:5: a tab"}},
		{"1: a\ntrue: b\n1.5: c\n", []string{
			"x.yaml:1:1: a key that is no text", "x.yaml:2:1: a key that is no text", "x.yaml:3:1: a key that is no text"}},
		{"a:\nb: \"\"\n", []string{"x.yaml:1:3: a value is missing"}},
		{"a: {b, c: 1}\n", []string{"x.yaml:1:6: a value is missing"}},
		{"a: \"\\udc00\"\n", []string{"x.yaml:1:4: a broken escape"}},
		{"a: x\x00y\n", []string{"x.yaml:1:5: a control character (U+0000)"}},
		{"a: x\u0085y\n", []string{"x.yaml:1:5: a control character (U+0085)"}},
		{"a: \xff\n", []string{"x.yaml:1:1: the line is not valid UTF-8"}},
		{"\ufeffa: 1\n", []string{"x.yaml:1:1: the file begins with a byte order mark"}},
		{"", []string{"x.yaml: the file holds no value"}},
		{"# nothing\n", []string{"x.yaml: the file holds no value"}},
		{"a: [1, 2\n", []string{"x.yaml:1:4: sequence end token ']' not found"}},
		{"a:\n  - x\n b: 1\n", []string{"x.yaml:3:2: value is not allowed in this context"}},
		{"{a: 1}\n{b: 2}\n", []string{"x.yaml:2:1: value is not allowed in this context"}},
	} {
		refuse(t, c.text, c.want...)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		l                Limits
	}{
		{"bytes", strings.Repeat("a", 11), "x.yaml: the file has more than 10 bytes", Limits{Bytes: 10}},
		{"flow depth", strings.Repeat("[", 5) + strings.Repeat("]", 5), "x.yaml:1:5: more than 4 levels", Limits{Depth: 4}},
		{"block depth", "a:\n b:\n  c:\n   d: 1\n", "x.yaml:3:3: more than 2 levels", Limits{Depth: 2}},
		{"nodes", "[1,2,3,4]", "x.yaml:1:6: more than 3 values", Limits{Nodes: 3}},
		{"far right", strings.Repeat("- ", 300) + "a\n", "", Limits{}},
		{"100 kB of brackets", strings.Repeat("[", 100_000), "x.yaml:1:41: more than 40 levels", Limits{}},
	} {
		f := Parse("x.yaml", []byte(c.text), c.l)
		got := f.Problems()
		if len(got) == 0 {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		if c.want != "" && got[0].Error() != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got[0].Error(), c.want)
		}
	}
}

func TestAccepted(t *testing.T) {
	text := `---
# a comment
text: plain words # behind it
quoted: 'it''s'
double: "a\tb\u00e9\ud83d\ude00\/"
date: 2026-01-05T10:00:00Z
version: 2.14.3
n: [0, -0, 1, 1.5e+3, 1E5, -12.25]
flags: {yes: true, no: false, null: null}
block: |
  one
  two
list:
  - a
  - {b: c}
empty: {}
none: []
word: yes
`
	f := Parse("x.yaml", []byte(text), Limits{})
	if ps := f.Problems(); len(ps) > 0 {
		t.Fatal(ps)
	}
	want := map[string]any{
		"text": "plain words", "quoted": "it's", "double": "a\tbé😀/", "date": "2026-01-05T10:00:00Z", "version": "2.14.3",
		"n":     []any{json.Number("0"), json.Number("-0"), json.Number("1"), json.Number("1.5e+3"), json.Number("1E5"), json.Number("-12.25")},
		"flags": map[string]any{"yes": true, "no": false, "null": nil},
		"block": "one\ntwo\n", "list": []any{"a", map[string]any{"b": "c"}}, "empty": map[string]any{}, "none": []any{}, "word": "yes",
	}
	if got := f.Root().Value(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
	if at := f.Root().Get("list").Items[1].Get("b").Pos; at != (Pos{15, 9}) {
		t.Errorf("place of c: %v", at)
	}
}

func TestCRLF(t *testing.T) {
	f := Parse("x.yaml", []byte("a: 1\r\nb: x\r\n"), Limits{})
	if len(f.Problems()) > 0 || f.Root().Get("b").Text != "x" {
		t.Error(f.Problems())
	}
}

func TestRender(t *testing.T) {
	f := Parse("x.yaml", []byte("top:\n  summry: hello\n"), Limits{})
	f.Map(f.Root().Get("top"), "a contract", "summary", "owner")
	var b bytes.Buffer
	if err := f.Problems().Render(&b); err != nil {
		t.Fatal(err)
	}
	want := "x.yaml:2:3: a contract has no key \"summry\" [unknown-key]\n" +
		"  |   summry: hello\n" +
		"  |   ^\n" +
		"  = did you mean \"summary\"?\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestNoMappingIsNotQuoted names a file by mistake that holds a secret.
func TestNoMappingIsNotQuoted(t *testing.T) {
	const secret = "4711-WORD"
	for _, text := range []string{
		secret + "\n", "- " + secret + "\n", "\t" + secret + "\n", "&" + secret + " x\n", "\"" + secret + "\n", secret + "\x00\n", "a: [" + secret + "\n",
		"0x4711\n", "- 0x4711\n- b: True\n", "4711_1\n",
	} {
		f := Parse("recovery.key", []byte(text), Limits{})
		f.Map(f.Root(), "the site file", "targets")
		f.Report(Pos{1, 1}, "type", "", "the site file must be a mapping")
		var b bytes.Buffer
		if err := f.Problems().Render(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "4711") || strings.Contains(b.String(), "True") || strings.Contains(b.String(), "|") {
			t.Errorf("%q is quoted:\n%s", text, b.String())
		}
	}
}

// TestHintShowsAValueOfTheKind: every kind that a place may need is shown.
func TestHintShowsAValueOfTheKind(t *testing.T) {
	f := Parse("x.yaml", []byte("a: [1]\n"), Limits{})
	at := f.Root().Get("a")
	for kind, want := range map[Kind]string{Bool: "true or false", Number: "such as 10", Mapping: "{key: value}", String: `"a word"`} {
		before := f.Count()
		f.Is(at, kind, "it")
		if got := f.problems[before].Hint; !strings.Contains(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

func TestRenderLongLine(t *testing.T) {
	line := strings.Repeat("x", 300) + ": 012"
	p := Parse("x.yaml", []byte(line+"\n"), Limits{}).Problems()
	var b bytes.Buffer
	if err := p.Render(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines[1]) > excerptLimit+10 || !strings.HasPrefix(lines[1][strings.Index(lines[2], "^"):], "012") {
		t.Errorf("the caret is not under the number:\n%s", b.String())
	}
}

func TestDecode(t *testing.T) {
	f := Parse("x.yaml", []byte("n: 7\nbig: 99\nd: 10s\nbad: 10 s\nlong: 9h\nw: seson\nlist: [a, a]\ntext: 5\nflag: nope\nbare: 5\n"), Limits{})
	r := f.Root()
	if v, ok := f.Whole(r.Get("n"), "n", 1, 10); !ok || v != 7 {
		t.Error("n")
	}
	f.Whole(r.Get("big"), "big", 1, 10)
	if d, ok := f.Duration(r.Get("d"), "d", time.Second, time.Minute); !ok || d != 10*time.Second {
		t.Error("d")
	}
	f.Duration(r.Get("bad"), "bad", time.Second, time.Minute)
	f.Duration(r.Get("long"), "long", time.Second, time.Minute)
	f.Word(r.Get("w"), "w", "session", "every_call")
	f.Texts(r.Get("list"), "list")
	f.Text(r.Get("text"), "text")
	f.Flag(r.Get("flag"), "flag")
	f.Duration(r.Get("bare"), "bare", time.Second, time.Minute)
	f.Require(r, "the file", "owner")
	want := `x.yaml:1:1: the file needs the key "owner"
x.yaml:2:6: big must be a whole number from 1 to 10
x.yaml:4:6: bad is no length of time
x.yaml:5:7: long must be from 1s to 1m
x.yaml:6:4: w cannot be "seson"; it is one of session, every_call
x.yaml:7:11: "a" stands twice in list
x.yaml:8:7: text must be text, not a number
x.yaml:9:7: flag must be true or false, not text
x.yaml:10:7: bare is no length of time`
	if got := f.Problems().Error(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// A key whose value was refused is not reported as missing too.
func TestRequireTellsOnce(t *testing.T) {
	f := Parse("x.yaml", []byte("owner: 012\n"), Limits{})
	f.Require(f.Root(), "the file", "owner")
	if n := len(f.Problems()); n != 1 {
		t.Errorf("%d problems", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a: 1\n", "a: {b: [1, 'x', \"y\"]}\n", "- a\n- - b\n", "a: |\n  x\n", "{\"a\":[1,2,{\"b\":null}]}", "a: &x 1\nb: *x\n",
		"? a\n: b\n", "a: !!str 3\n", "---\na: 1\n---\n", "a: \"\\ud83d\\ude00\"\n", "a:\n  b:\n c: 1\n", "[[[[", "a: >-\n  x\n  y\n", "%YAML\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file := Parse("x.yaml", b, Limits{Bytes: 4096, Nodes: 500})
		if (file.Root() == nil) != (len(file.Problems()) > 0) && file.Root() == nil {
			t.Fatal("no value and no problem")
		}
		for _, p := range file.Problems() {
			if p.Message == "" || p.Line < 0 || p.Column < 0 {
				t.Fatalf("a problem without a text or a place: %#v", p)
			}
		}
		if len(file.Problems()) > 0 {
			return
		}
		checkTree(t, file.Root())
		// What was read says the same when it is written as JSON and read again.
		again, err := json.Marshal(file.Root().Value())
		if err != nil || len(again) > 4096 || bytes.ContainsAny(again, "\x7f\u0085") {
			return
		}
		second := Parse("y.json", again, Limits{Nodes: 500})
		if len(second.Problems()) > 0 {
			t.Fatalf("%q was read, its JSON %q was not: %v", b, again, second.Problems())
		}
		if !reflect.DeepEqual(second.Root().Value(), file.Root().Value()) {
			t.Fatalf("%q and its JSON %q differ", b, again)
		}
	})
}

func checkTree(t *testing.T, n *Node) {
	if n == nil || n.Kind == 0 || n.Pos.Line < 1 || n.Pos.Column < 1 {
		t.Fatalf("a node without a kind or a place: %#v", n)
	}
	seen := map[string]bool{}
	for _, m := range n.Members {
		if seen[m.Key] {
			t.Fatalf("the key %q twice", m.Key)
		}
		seen[m.Key] = true
		checkTree(t, m.Value)
	}
	for _, it := range n.Items {
		checkTree(t, it)
	}
}
