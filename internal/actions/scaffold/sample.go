package scaffold

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"strings"

	"chatelaine/internal/validate"
)

// samples are values of fixtures. They lie in the past, so that nothing depends
// on the day on which a fixture is played. Those of an answer are others than
// those of an input: nothing is taken for the other by accident.
type samples struct{ moment, day, uuid, text, word, number string }

var (
	inputSamples = samples{
		"2026-01-05T10:00:00Z", "2026-01-05", "6f1c2e9a-4b7d-4c3e-9a50-1d2f3a4b5c6d", "An example text", "example-1", "1",
	}
	answerSamples = samples{
		"2026-01-05T10:00:02Z", "2026-01-06", "0b9d7c44-2f1e-4f7a-8c35-5a6b7c8d9e0f", "A text of the answer", "answer-2", "2",
	}
)

func samplesFor(u use) samples {
	if u == forAnswer {
		return answerSamples
	}
	return inputSamples
}

// Sample gives a value of the shape for an input: its example where that fits,
// else one made up. A value that fits could not be found where ok is false.
func (s Shape) Sample() (v any, ok bool) { return s.sample(forInput) }

func (s Shape) sample(u use) (v any, ok bool) {
	if s.Example != nil && s.fits(s.Example, u) {
		return s.Example, true
	}
	v = s.made(u)
	return v, s.fits(v, u)
}

func (s Shape) made(u use) any {
	from := samplesFor(u)
	switch s.Kind {
	case Word:
		if s.Pattern == WordPattern(s.Max) && s.Max >= len(from.word) {
			return from.word
		}
		return fromPattern(s.Pattern)
	case Choice:
		if len(s.Values) > 0 {
			return s.Values[0]
		}
	case Whole, Decimal:
		return s.someNumber(json.Number(from.number))
	case YesNo:
		return true
	case Moment:
		return from.moment
	case Day:
		return from.day
	case UUID:
		return from.uuid
	case List:
		item, _ := s.Items.sample(u)
		out := make([]any, min(max(s.Min, 1), s.Max))
		for i := range out {
			out[i] = item
		}
		return out
	case Object:
		return sampleObject(s.Members, u)
	}
	return cut(strings.Repeat(from.text, 1+s.Min/len(from.text)), s.Max)
}

// others are values of which one differs from any given one, where the shape has
// two. Not each of them fits the shape.
func (s Shape) others() []any {
	from := answerSamples
	out := append([]any{}, s.Values...)
	switch s.Kind {
	case YesNo:
		return append(out, true, false)
	case Whole, Decimal:
		return append(out, s.someNumber(json.Number(from.number)), s.Low, s.High)
	case Moment:
		return append(out, from.moment, inputSamples.moment)
	case Day:
		return append(out, from.day, inputSamples.day)
	case UUID:
		return append(out, from.uuid, inputSamples.uuid)
	case Text, Word:
		out = append(out, from.word, cut(from.word, s.Max))
		if made, ok := s.made(forAnswer).(string); ok && made != "" {
			for _, last := range "zbZB29" {
				out = append(out, made[:len(made)-1]+string(last))
			}
		}
	}
	return out
}

func cut(s string, most int) string { return s[:min(len(s), max(most, 0))] }

// someNumber is the wanted one where that lies between the bounds.
func (s Shape) someNumber(want json.Number) any {
	switch {
	case validate.Compare(s.Low, want) > 0:
		return s.Low
	case validate.Compare(s.High, want) < 0:
		return s.High
	}
	return want
}

func sampleObject(members []Member, u use) any {
	out := map[string]any{}
	for _, m := range members {
		if v, ok := m.Shape.sample(u); ok || m.Required {
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
