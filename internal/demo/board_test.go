package demo

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func newBoard(out *bytes.Buffer, colour bool) *board {
	return &board{out: out, colour: colour, gone: func() {}}
}

func TestClaims(t *testing.T) {
	var out bytes.Buffer
	b := newBoard(&out, false)
	b.claim(claim{"it holds", "seen\nso", true, "not shown"})
	b.claim(claim{"it does not", "seen", false, "something else"})
	want := "ok      it holds                    seen\\u000aso\n" +
		"FAILED  it does not                 seen\n" +
		"          expected   something else\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
	if b.claims != 2 || b.failed != 1 {
		t.Errorf("%d claims, %d failed", b.claims, b.failed)
	}
	if b.shown.String() != out.String() {
		t.Error("what was shown is not kept")
	}
}

func TestColourIsOnlyPaint(t *testing.T) {
	var plain, painted bytes.Buffer
	for _, b := range []*board{newBoard(&plain, false), newBoard(&painted, true)} {
		b.scene("a scene")
		b.claim(claim{"a claim", "a fact", false, "another"})
		b.bytes("said", "bytes")
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("colours where there is no terminal")
	}
	stripped := painted.String()
	for _, code := range []string{bold, dimmed, red, green, "0"} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+code+"m", "")
	}
	if stripped != plain.String() || stripped == painted.String() {
		t.Errorf("painted %q, plain %q", painted.String(), plain.String())
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"short", []string{"short"}},
		{"0123456789", []string{"0123456789"}},
		{"0123456789ab", []string{"0123456789", "ab"}},
		{"0123456,89abc", []string{"0123456,", "89abc"}},
		{"0,23456789abc", []string{"0,23456789", "abc"}},
		{"ääääääääääää", []string{"ääääääääää", "ää"}},
	} {
		if got := wrap(c.text, 10); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("wrap(%q) is %q, want %q", c.text, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	if got := clip("0123456789", 10); got != "0123456789" {
		t.Errorf("a text that fits became %q", got)
	}
	if got := clip("0123456789abcdef", 10); got != "0123456…ef" {
		t.Errorf("clip gave %q", got)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1,000 bytes", 17865050: "17,865,050 bytes"} {
		if got := count(n, "byte"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

type noWriter struct{}

func (noWriter) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestAReaderThatWentAwayIsTold(t *testing.T) {
	gone := false
	b := &board{out: noWriter{}, gone: func() { gone = true }}
	b.line("x")
	if !gone {
		t.Error("the play would go on for nobody")
	}
}
