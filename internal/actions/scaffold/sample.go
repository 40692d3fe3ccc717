package scaffold

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"strings"

	"chatelaine/internal/validate"
)

// sampleMoment and the like are values of fixtures. They lie in the past, so
// that nothing depends on the day on which a fixture is played.
const (
	sampleMoment = "2026-01-05T10:00:00Z"
	sampleDay    = "2026-01-05"
	sampleUUID   = "6f1c2e9a-4b7d-4c3e-9a50-1d2f3a4b5c6d"
	sampleText   = "An example text"
	sampleWord   = "example-1"
)

// Sample gives a value of the shape: its example where that fits, else one made
// up. A value that fits could not be found where ok is false.
func (s Shape) Sample() (v any, ok bool) {
	if s.Example != nil && s.fits(s.Example, forInput) {
		return s.Example, true
	}
	v = s.made()
	return v, s.fits(v, forInput)
}

func (s Shape) made() any {
	switch s.Kind {
	case Word:
		if s.Pattern == WordPattern(s.Max) && s.Max >= len(sampleWord) {
			return sampleWord
		}
		return fromPattern(s.Pattern)
	case Choice:
		if len(s.Values) > 0 {
			return s.Values[0]
		}
	case Whole, Decimal:
		return s.someNumber()
	case YesNo:
		return true
	case Moment:
		return sampleMoment
	case Day:
		return sampleDay
	case UUID:
		return sampleUUID
	case List:
		item, _ := s.Items.Sample()
		out := make([]any, min(max(s.Min, 1), s.Max))
		for i := range out {
			out[i] = item
		}
		return out
	case Object:
		return sampleObject(s.Members)
	}
	return cut(strings.Repeat(sampleText, 1+s.Min/len(sampleText)), s.Max)
}

func cut(s string, most int) string { return s[:min(len(s), max(most, 0))] }

// someNumber is 1 where that lies between the bounds.
func (s Shape) someNumber() any {
	one := json.Number("1")
	switch {
	case validate.Compare(s.Low, one) > 0:
		return s.Low
	case validate.Compare(s.High, one) < 0:
		return s.High
	}
	return one
}

func sampleObject(members []Member) any {
	out := map[string]any{}
	for _, m := range members {
		if v, ok := m.Shape.Sample(); ok || m.Required {
			out[m.Name] = v
		}
	}
	return out
}

// fromPattern makes a short text that a pattern of listed characters matches.
func fromPattern(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	grow(re.Simplify(), &b)
	if ok, _ := regexp.MatchString(pattern, b.String()); !ok {
		return ""
	}
	return b.String()
}

// sampleChars bounds what is made from one pattern.
const sampleChars = 1000

// grow writes the shortest text that re matches.
func grow(re *syntax.Regexp, b *strings.Builder) {
	if b.Len() > sampleChars {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(friendly(re.Rune))
	case syntax.OpCapture, syntax.OpPlus, syntax.OpAlternate:
		grow(re.Sub[0], b)
	case syntax.OpRepeat:
		for range re.Min {
			grow(re.Sub[0], b)
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			grow(sub, b)
		}
	}
}

// friendly chooses a letter or a digit of a class where it has one.
func friendly(class []rune) rune {
	for _, want := range []rune{'a', '1', 'A'} {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= want && want <= class[i+1] {
				return want
			}
		}
	}
	if len(class) == 0 {
		return 'a'
	}
	return class[0]
}
