package conformance

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	segmentio "github.com/segmentio/encoding/json"

	"chatelaine/internal/validate"
)

// Two other parsers watch ours: the standard library's jsontext, which is as
// strict as RFC 8259 and I-JSON ask, and segmentio's, which shares no code with
// it and is as tolerant as encoding/json of old.

// byStandard says whether jsontext takes the input as one value.
func byStandard(in []byte, opts ...jsontext.Options) bool {
	d := jsontext.NewDecoder(bytes.NewReader(in), opts...)
	if d.SkipValue() != nil {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
}

// bySegmentio says whether segmentio takes the input as one value, and gives it.
func bySegmentio(in []byte) (v any, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	rest, err := segmentio.Parse(in, &v, segmentio.UseNumber)
	return v, err == nil && len(bytes.Trim(rest, " \t\r\n")) == 0
}

// facts are the reasons for which our parser may refuse an input, found without
// its code: by rule, true where the reason is there.
func facts(in []byte, l validate.Limits) map[string]bool {
	f := map[string]bool{
		"bytes":        len(in) > l.Bytes,
		"bom":          bytes.HasPrefix(in, []byte("\ufeff")),
		"invalid-utf8": !utf8.Valid(in),
	}
	w := &walk{facts: f, limits: l, d: jsontext.NewDecoder(bytes.NewReader(in), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	broken := w.all() != nil
	_, taken := bySegmentio(in)
	f["syntax"] = broken && !taken
	f["number"], f["trailing-data"] = f["syntax"], f["syntax"]
	// The value at which the text breaks off counts as one, too.
	f["nodes"] = f["nodes"] || broken && w.nodes == l.Nodes
	// A text that breaks off may have been too long before.
	rest := int64(len(in)) - w.d.InputOffset()
	w.mark("string-length", broken && rest > int64(l.StringBytes))
	w.mark("name-length", broken && rest > int64(l.NameBytes))
	f["lone-surrogate"] = hasSurrogateEscape(in) && !byStandard(in, jsontext.AllowDuplicateNames(true))
	return f
}

// walk counts what the limits bound, token by token.
type walk struct {
	facts  map[string]bool
	limits validate.Limits
	d      *jsontext.Decoder
	nodes  int
}

func (w *walk) all() error {
	if err := w.value(); err != nil {
		return err
	}
	if _, err := w.d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

func (w *walk) mark(rule string, is bool) { w.facts[rule] = w.facts[rule] || is }

func (w *walk) value() error {
	tok, err := w.d.ReadToken()
	if err != nil {
		return err
	}
	w.nodes++
	w.mark("nodes", w.nodes > w.limits.Nodes)
	w.mark("depth", w.d.StackDepth() > w.limits.Depth)
	switch tok.Kind() {
	case '"':
		w.mark("string-length", len(tok.String()) > w.limits.StringBytes)
	case '0':
		w.number(tok.String())
	case '[':
		return w.inside(']', w.value)
	case '{':
		names := map[string]bool{}
		return w.inside('}', func() error { return w.member(names) })
	}
	return nil
}

func (w *walk) inside(end jsontext.Kind, part func() error) error {
	for w.d.PeekKind() != end {
		if err := part(); err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken()
	return err
}

func (w *walk) member(names map[string]bool) error {
	tok, err := w.d.ReadToken()
	if err != nil {
		return err
	}
	name := tok.String()
	w.mark("name-length", len(name) > w.limits.NameBytes)
	w.mark("duplicate-member", names[name])
	names[name] = true
	return w.value()
}

// number looks at the digits only, without arithmetic on the value.
func (w *walk) number(text string) {
	unsplit, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa := strings.TrimPrefix(unsplit, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	lead := len(digits) - len(strings.TrimLeft(digits, "0"))
	// Zeros before the first digit that counts are bounded as well.
	longest := w.limits.NumberDigits + w.limits.Exponent + len("-0.")
	w.mark("number-length", len(digits)-lead > w.limits.NumberDigits || len(unsplit) > longest)
	written, err := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
	if exponent != "" && (err != nil || len(exponent) > 6) {
		w.mark("exponent", true)
		return
	}
	scientific := written + len(whole) - 1 - lead
	w.mark("exponent", written > w.limits.Exponent || written < -w.limits.Exponent)
	w.mark("exponent", lead < len(digits) && (scientific > w.limits.Exponent || scientific < -w.limits.Exponent))
}

// hasSurrogateEscape finds \ud800 to \udfff; an escaped backslash before it is
// of no matter here, because the strict decoder must refuse as well.
func hasSurrogateEscape(in []byte) bool {
	low := bytes.ToLower(in)
	for _, first := range "89abcdef" {
		if bytes.Contains(low, []byte(`\ud`+string(first))) {
			return true
		}
	}
	return false
}

// ours are the rules by which we refuse what both others take.
var ours = map[string]bool{
	"bytes": true, "depth": true, "nodes": true, "string-length": true, "name-length": true, "number-length": true, "exponent": true,
}

// narrow limits bring every limit within the reach of short inputs.
var narrow = validate.Limits{Bytes: 300, Depth: 4, Nodes: 12, StringBytes: 20, NameBytes: 6, NumberDigits: 8, Exponent: 12}

func differ(t *testing.T, in []byte, l validate.Limits) {
	t.Helper()
	v, err := validate.Parse(in, l)
	strict := byStandard(in)
	theirs, taken := bySegmentio(in)
	found := facts(in, l)
	if err == nil {
		if !strict || !taken {
			t.Fatalf("we take %q, jsontext %v, segmentio %v", in, strict, taken)
		}
		for rule, is := range found {
			if is {
				t.Fatalf("we take %q in spite of %s", in, rule)
			}
		}
		if !bytes.Equal(validate.Canonical(v), validate.Canonical(standardNumbers(theirs))) {
			t.Fatalf("%q is %s here and %v for segmentio", in, validate.Canonical(v), theirs)
		}
		return
	}
	pe, ok := errors.AsType[*validate.ParseError](err)
	if !ok {
		t.Fatalf("%q: an error of another kind: %v", in, err)
	}
	if !found[pe.Rule] {
		t.Fatalf("we refuse %q by %s, which nothing else finds there (%v)", in, pe.Rule, found)
	}
	if strict && taken && !ours[pe.Rule] {
		t.Fatalf("both others take %q, which we refuse by %s, no rule of ours alone", in, pe.Rule)
	}
}

// standardNumbers gives segmentio's numbers the type that ours have.
func standardNumbers(v any) any {
	switch v := v.(type) {
	case segmentio.Number:
		return json.Number(v)
	case []any:
		for i, e := range v {
			v[i] = standardNumbers(e)
		}
	case map[string]any:
		for name, e := range v {
			v[name] = standardNumbers(e)
		}
	}
	return v
}

var differentialSeeds = []string{
	`{"ok":true,"data":{"qty":4,"price":19.99,"at":"2026-01-05T10:00:00Z"}}`, `{"a":1,"\u0061":2}`, `[[[[[]]]]]`, `"\ud83d\ude00"`, `"\ud800"`, `"\udc00\ud800"`, `"\\ud800"`,
	"\"\xff\"", "\"\xed\xa0\x80\"", "\ufeff1", `-0.0e-0`, `1E+12`, `1e13`, `0.000000000000123`, `123456789`, `01`, `1.`, `.5`, `+1`, `-`, `NaN`, `0x1`, `1 2`, `{} x`, `[1,]`, `{"a":}`,
	`{"abcdefg":1}`, `"123456789012345678901"`, `[1,2,3,4,5,6,7,8,9,10,11,12]`, "\"\x00\"", `"\u0000"`, "\t\r\n1 ", "1\x00", `"\x41"`, `tru`, `nulll`, ``, ` `, `{"":0,"":0}`, `0e999`, `1e1000001`, `1e-0000012`,
}

func FuzzDifferential(f *testing.F) {
	for i, s := range differentialSeeds {
		f.Add([]byte(s), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, in []byte, tight bool) {
		l := validate.AnswerLimits()
		if tight {
			l = narrow
		}
		differ(t, in, l)
	})
}

// Every seed under both limits, every cut of it, and every change of one byte.
func TestDifferentialNeighbours(t *testing.T) {
	for _, s := range differentialSeeds {
		for _, l := range []validate.Limits{validate.AnswerLimits(), narrow} {
			differ(t, []byte(s), l)
		}
		for i := range s {
			differ(t, []byte(s[:i]), narrow)
			for _, b := range []byte("\x00\x1f \"'\\,:[]{}+-.019eEu\x7f\x80\xbf\xc0\xed\xef\xff") {
				in := []byte(s)
				in[i] = b
				differ(t, in, narrow)
			}
		}
	}
}
