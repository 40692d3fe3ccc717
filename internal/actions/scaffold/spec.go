package scaffold

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/validate"
)

// KindHelp explains the kinds of an input and an output, a line each.
var KindHelp = []string{
	"text=300             free text up to 300 characters, never in the path",
	"word=64              letters, digits and . _ -, up to 64 of them",
	"choice=api|worker    one of these words",
	"whole=0..100         a whole number between these",
	"number=0..1          a number between these",
	"yesno                true or false",
	"time, day, uuid      2026-01-05T10:00:00Z, 2026-01-05, a UUID",
	"list=5:word=64       up to five of another kind",
}

// ParseInput reads NAME[?]:KIND[=BOUND], as in reason?:text=300. Where the input
// goes is decided later: into the path where it names a placeholder, else into
// the query or the body.
func ParseInput(spec string) (Input, error) {
	name, kind, ok := strings.Cut(spec, ":")
	if !ok {
		return Input{}, fmt.Errorf("%q says no kind: write NAME:KIND, such as reason:text=300", spec)
	}
	name, optional := strings.CutSuffix(strings.TrimSpace(name), "?")
	s, err := parseKind(kind)
	if err != nil {
		return Input{}, fmt.Errorf("input %q: %w", name, err)
	}
	return Input{Name: name, Member: name, Required: !optional, Shape: s}, nil
}

// ParseOutput reads NAME[?][@POINTER]:KIND[=BOUND], as in id@/data/id:word=40.
// Without a pointer it is the member of that name. A text is shown to people and
// is no evidence.
func ParseOutput(spec string) (Output, error) {
	head, kind, ok := strings.Cut(spec, ":")
	if !ok {
		return Output{}, fmt.Errorf("%q says no kind: write NAME:KIND, such as state:choice=open|closed", spec)
	}
	name, pointer, placed := strings.Cut(strings.TrimSpace(head), "@")
	name, optional := strings.CutSuffix(name, "?")
	s, err := parseKind(kind)
	if err != nil {
		return Output{}, fmt.Errorf("output %q: %w", name, err)
	}
	if !placed {
		pointer = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	if _, err := validate.ParsePointer(pointer); err != nil || !strings.HasPrefix(pointer, "/") {
		return Output{}, fmt.Errorf("output %q: %q is no pointer to a member: it begins with /", name, pointer)
	}
	if !outputName(name) {
		return Output{}, fmt.Errorf("%q is no name of an output: small letters, digits and _, beginning with a letter", name)
	}
	return Output{Name: name, Pointer: pointer, Required: !optional, Shape: s}, nil
}

// outputName is narrower than a schema's member: a display text needs it.
func outputName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

const (
	maxText  = 20000 // characters of a free text that an agent may give
	maxWord  = 128   // as the result lint has it
	maxItems = 100
)

func parseKind(spec string) (Shape, error) {
	kind, bound, _ := strings.Cut(strings.TrimSpace(spec), "=")
	switch kind {
	case "text":
		n, err := count(bound, DefaultText, maxText)
		return Shape{Kind: Text, Max: n}, err
	case "word":
		n, err := count(bound, DefaultWord, maxWord)
		return Shape{Kind: Word, Max: n, Pattern: WordPattern(max(n, 1))}, err
	case "choice":
		return parseChoice(bound)
	case "whole", "number":
		return parseRange(kind, bound)
	case "list":
		return parseList(bound)
	}
	if k, ok := map[string]Kind{"yesno": YesNo, "time": Moment, "day": Day, "uuid": UUID}[kind]; ok {
		if bound != "" {
			return Shape{}, fmt.Errorf("%s takes no bound", kind)
		}
		return Shape{Kind: k}, nil
	}
	return Shape{}, fmt.Errorf("there is no kind %q: text, word, choice, whole, number, yesno, time, day, uuid or list", kind)
}

func count(s string, standard, most int) (int, error) {
	if s == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%q is no bound from 1 to %d", s, most)
	}
	return n, nil
}

func parseChoice(bound string) (Shape, error) {
	s := Shape{Kind: Choice}
	for _, w := range strings.Split(bound, "|") {
		if w = strings.TrimSpace(w); w == "" {
			return s, fmt.Errorf("a choice names its words: choice=api|worker")
		}
		if Hidden(w) {
			return s, fmt.Errorf("a word of the choice holds characters that nobody sees")
		}
		if slices.Contains(s.Values, any(w)) {
			return s, fmt.Errorf("the word %q stands twice", w)
		}
		s.Values = append(s.Values, w)
	}
	return s, nil
}

func parseRange(kind, bound string) (Shape, error) {
	s := Shape{Kind: Whole, Low: "0", High: number(DefaultHigh)}
	if kind == "number" {
		s.Kind = Decimal
	}
	if bound == "" {
		return s, nil
	}
	low, high, ok := strings.Cut(bound, "..")
	if !ok || !isNumber(low, s.Kind) || !isNumber(high, s.Kind) || validate.Compare(json.Number(low), json.Number(high)) > 0 {
		return s, fmt.Errorf("%q is no range: write the lowest and the highest, such as 0..100", bound)
	}
	s.Low, s.High = json.Number(low), json.Number(high)
	return s, nil
}

// isNumber holds a bound to JSON's spelling, and a whole one to an int64.
func isNumber(s string, k Kind) bool {
	if k == Whole {
		n, err := strconv.ParseInt(s, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == s
	}
	v, err := validate.Parse([]byte(s), validate.CallerLimits())
	_, is := v.(json.Number)
	return err == nil && is
}

func parseList(bound string) (Shape, error) {
	n, of, ok := strings.Cut(bound, ":")
	if !ok {
		return Shape{}, fmt.Errorf("a list says how many and of what: list=5:word=64")
	}
	most, err := count(n, DefaultItems, maxItems)
	if err != nil {
		return Shape{}, err
	}
	item, err := parseKind(of)
	if err == nil && !item.scalar() {
		err = fmt.Errorf("a list holds plain values")
	}
	return Shape{Kind: List, Max: most, Items: &item}, err
}
