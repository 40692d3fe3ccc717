package contracttest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// recordedHead stands above every recorded fixture.
const recordedHead = `# Made of a real answer. Secrets, persons and addresses are stand-ins as far as
# they show by their names or forms. Look through it before anybody else can.
`

// write writes the fixture's file.
func (s *scribe) write(fx fixture, g got) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(recordedHead)
	fmt.Fprintf(&b, "name: %s\ninput: %s\nnow: %s\nanswers:\n", fx.name, flow(fx.input), fx.now.Format(time.RFC3339Nano))
	for _, a := range fx.answers {
		if err := writeAnswer(&b, a); err != nil {
			return nil, err
		}
	}
	if err := writeWant(&b, g); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeAnswer(b *bytes.Buffer, a answer) error {
	fmt.Fprintf(b, "  - step: %s\n", a.step)
	if a.close != "" {
		fmt.Fprintf(b, "    close: %s\n", a.close)
		return nil
	}
	fmt.Fprintf(b, "    status: %d\n", a.status)
	if len(a.headers) > 0 {
		lines := map[string]any{}
		for _, h := range a.headers {
			list, _ := lines[h.Name].([]any)
			lines[h.Name] = append(list, h.Value)
		}
		for name, v := range lines {
			if list := v.([]any); len(list) == 1 {
				lines[name] = list[0]
			}
		}
		fmt.Fprintf(b, "    headers: %s\n", flow(lines))
	}
	for _, name := range slices.Sorted(maps.Keys(a.tokens)) {
		t := a.tokens[name]
		one := map[string]any{"keys": t.keys, "claims": t.claims}
		if t.kid != "" {
			one["kid"] = t.kid
		}
		fmt.Fprintf(b, "    jws: %s\n", flow(map[string]any{name: one}))
	}
	if !utf8.Valid(a.body) {
		return fmt.Errorf("the body of an answer of the step %s is no text, and a fixture has only text; the record keeps it", a.step)
	}
	fmt.Fprintf(b, "    body: %s\n", scalar(string(a.body)))
	return nil
}

// scalar writes a text as YAML reads it on one line: between single quotes where
// every character shows, else between double quotes.
func scalar(s string) string {
	if !strings.ContainsFunc(s, unshown) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return flow(s)
}

// flow writes a value as JSON on one line, which YAML reads too. What does not
// show itself is an escape.
func flow(v any) string {
	var b strings.Builder
	for _, r := range string(encode(v)) {
		switch {
		case !unshown(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// writeWant says what the contract made of the answers.
func writeWant(b *bytes.Buffer, g got) error {
	if !g.ok {
		fmt.Fprintf(b, "want:\n  ok: false\n  code: %s\n", g.code())
		if g.layer() != "" {
			fmt.Fprintf(b, "  layer: %s\n", g.layer())
		}
		return nil
	}
	data, _, err := plain(g.data)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "want:\n  ok: true\n  data: %s\n", flow(data))
	if len(g.display) > 0 {
		display, _, err := plain(g.display)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "  display: %s\n", flow(display))
	}
	return nil
}
