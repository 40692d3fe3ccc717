package validate

import (
	"bytes"
	"unicode/utf8"
)

// readNone takes no byte.
func readNone(b []byte, l Limits) error {
	if len(b) > 0 {
		return (&parser{in: b, limits: l}).fail(ruleNotEmpty, 0)
	}
	return nil
}

// readText takes any UTF-8 without a byte order mark, as one text.
func readText(b []byte, l Limits) (any, error) {
	p := &parser{in: b, limits: l}
	if err := p.whole(); err != nil {
		return nil, err
	}
	if len(b) > l.StringBytes {
		return nil, p.fail(ruleString, l.StringBytes)
	}
	if at := invalidUTF8(b); at >= 0 {
		return nil, p.fail(ruleUTF8, at)
	}
	return string(b), nil
}

// whole holds what is true of the whole input whatever its form.
func (p *parser) whole() error {
	switch {
	case len(p.in) > p.limits.Bytes:
		return p.fail(ruleBytes, p.limits.Bytes)
	case bytes.HasPrefix(p.in, []byte(byteOrderMark)):
		return p.fail(ruleBOM, 0)
	}
	return nil
}

// invalidUTF8 returns where the first byte that is no UTF-8 stands, -1 for none.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// lines calls f with every line, from and to, without its line feed. The last
// line may lack one. An empty line is refused: a program that writes one has
// written something else than its records.
func (p *parser) lines(f func(from, to int) error) error {
	if err := p.whole(); err != nil {
		return err
	}
	for from := 0; from < len(p.in); {
		to := len(p.in)
		if n := bytes.IndexByte(p.in[from:], '\n'); n >= 0 {
			to = from + n
		}
		if from == to {
			return p.fail(ruleEmptyLine, from)
		}
		if err := f(from, to); err != nil {
			return err
		}
		from = to + 1
	}
	return nil
}

// plain holds a line to visible text: UTF-8 without control characters but
// tabs, and without characters at which other readers end a line.
func (p *parser) plain(from, to int) error {
	line := p.in[from:to]
	for i := 0; i < len(line); {
		c := line[i]
		if c < utf8.RuneSelf {
			if c < 0x20 && c != '\t' || c == 0x7f {
				return p.fail(ruleControl, from+i)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(line[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return p.fail(ruleUTF8, from+i)
		case isLineTrouble(r):
			return p.fail(ruleControl, from+i)
		}
		i += n
	}
	return nil
}

// isLineTrouble names control characters but the tab, and the two separators
// of Unicode that some readers take for ends of lines.
func isLineTrouble(r rune) bool {
	return r < 0x20 && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029
}

// node counts one value against the limit.
func (p *parser) node(at int) error {
	if p.nodes++; p.nodes > p.limits.Nodes {
		return p.fail(ruleNodes, at)
	}
	return nil
}

// slice makes one text of a part of the input.
func (p *parser) slice(from, to int) (string, error) {
	if to-from > p.limits.StringBytes {
		return "", p.fail(ruleString, from)
	}
	return string(p.in[from:to]), p.node(from)
}

// readNDJSON reads one document a line into an array. The limits hold for all
// lines together.
func readNDJSON(b []byte, l Limits) (any, error) {
	p := &parser{in: b, limits: l}
	if err := p.node(0); err != nil {
		return nil, err
	}
	if l.Depth < 1 {
		return nil, p.fail(ruleDepth, 0)
	}
	out := []any{}
	err := p.lines(func(from, to int) error {
		p.in, p.pos, p.path = b[:to], from, append(p.path[:0], step{index: len(out)})
		p.space()
		v, err := p.value()
		if err != nil {
			return err
		}
		if p.space(); p.pos < to {
			return p.fail(ruleTrailing, p.pos)
		}
		p.in, out = b, append(out, v)
		return nil
	})
	return out, err
}

// readKeyValues splits every line at the first separator. Nothing is trimmed.
func readKeyValues(b []byte, sep string, l Limits) (any, error) {
	p := &parser{in: b, limits: l}
	if err := p.node(0); err != nil {
		return nil, err
	}
	out := map[string]any{}
	err := p.lines(func(from, to int) error {
		if err := p.plain(from, to); err != nil {
			return err
		}
		n := bytes.Index(b[from:to], []byte(sep))
		switch {
		case n < 0:
			return p.fail(ruleSeparator, from)
		case n == 0:
			return p.fail(ruleEmptyName, from)
		case n > l.NameBytes:
			return p.fail(ruleName, from)
		}
		key := string(b[from : from+n])
		if _, twice := out[key]; twice {
			p.path = []step{{name: key, member: true}}
			return p.fail(ruleDuplicate, from)
		}
		v, err := p.slice(from+n+len(sep), to)
		out[key] = v
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readColumns splits every line into words at spaces and tabs. A line must have
// as many words as there are names: a banner, a heading and an empty cell do not.
func readColumns(b []byte, names []string, l Limits) (any, error) {
	p := &parser{in: b, limits: l}
	if err := p.node(0); err != nil {
		return nil, err
	}
	out := []any{}
	err := p.lines(func(from, to int) error {
		p.path = append(p.path[:0], step{index: len(out)})
		if err := p.plain(from, to); err != nil {
			return err
		}
		row, err := p.row(from, to, names)
		out = append(out, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p *parser) row(from, to int, names []string) (map[string]any, error) {
	if err := p.node(from); err != nil {
		return nil, err
	}
	row := make(map[string]any, len(names))
	i, count := from, 0
	for {
		for i < to && isBlank(p.in[i]) {
			i++
		}
		if i == to {
			break
		}
		start := i
		for i < to && !isBlank(p.in[i]) {
			i++
		}
		if count == len(names) {
			return nil, p.fail(ruleColumns, start)
		}
		word, err := p.slice(start, i)
		if err != nil {
			return nil, err
		}
		row[names[count]] = word
		count++
	}
	if count < len(names) {
		return nil, p.fail(ruleColumns, to)
	}
	return row, nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// readLine takes exactly one line, the whole of which the pattern matches. A
// group that took no part is absent.
func (f *Form) readLine(b []byte, l Limits) (any, error) {
	p := &parser{in: b, limits: l}
	if f.line == nil {
		return nil, p.fail(ruleForm, 0)
	}
	if err := p.node(0); err != nil {
		return nil, err
	}
	var out map[string]any
	err := p.lines(func(from, to int) error {
		if out != nil {
			return p.fail(ruleTrailing, from)
		}
		if err := p.plain(from, to); err != nil {
			return err
		}
		found := f.line.FindSubmatchIndex(b[from:to])
		if found == nil || found[0] != 0 || found[1] != to-from {
			return p.fail(ruleLine, from)
		}
		out = map[string]any{}
		for i := 1; i < len(f.groups); i++ {
			if found[2*i] < 0 {
				continue
			}
			v, err := p.slice(from+found[2*i], from+found[2*i+1])
			if err != nil {
				return err
			}
			out[f.groups[i]] = v
		}
		return nil
	})
	if err == nil && out == nil {
		err = p.fail(ruleLine, 0)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
