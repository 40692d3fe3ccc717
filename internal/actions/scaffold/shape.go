package scaffold

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"

	"chatelaine/internal/validate"
)

// Kind says what a value is. The zero value is none: a body that is not there.
type Kind uint8

// The kinds that a skeleton knows. All of them are bounded.
const (
	Text    Kind = iota + 1 // any characters, up to Max
	Word                    // what Pattern lets through, up to Max
	Choice                  // one of Values
	Whole                   // a whole number from Low to High
	Decimal                 // a number from Low to High
	YesNo
	Moment // RFC 3339 date and time
	Day    // RFC 3339 date
	UUID
	List   // up to Max of Items
	Object // closed, with Members
)

// Shape is a closed and bounded description of a value.
type Shape struct {
	Kind      Kind
	Min, Max  int // characters of Text and Word, elements of List
	Pattern   string
	Values    []any // of Choice: texts, numbers, true or false
	Low, High json.Number
	Items     *Shape
	Members   []Member
	Null      bool // null is another value, in an answer
	Example   any  // nil where there is none
}

// Member is one member of an object.
type Member struct {
	Name     string
	Required bool
	About    string
	Shape    Shape
}

// The bounds that are taken where nobody says one. Each is listed as a decision
// where a description left it out.
const (
	DefaultText  = 300     // characters of free text
	DefaultWord  = 64      // characters of a name or an id
	DefaultItems = 20      // elements of a list that an agent may give
	DefaultHigh  = 1000000 // of a whole number
	longText     = 4000    // characters of a text in an answer
	longList     = 200     // elements of a list in an answer
	momentChars  = 35      // an RFC 3339 time with nanoseconds and an offset
	dayChars     = 10
	uuidChars    = 36
)

// WordPattern is the anchored pattern of a name or an id: it fits a path.
func WordPattern(most int) string {
	return fmt.Sprintf("^[A-Za-z0-9][A-Za-z0-9._-]{0,%d}$", most-1)
}

// use says what a schema is for.
type use uint8

const (
	forInput use = iota + 1
	forAnswer
	forResult
)

// schema writes the shape as a JSON Schema.
func (s Shape) schema(u use) tree {
	out := s.typed(u)
	if s.Null && u == forAnswer {
		for i := range out {
			switch out[i].key {
			case "type":
				out[i].value = []any{out[i].value, "null"}
			case "enum":
				out[i].value = append(append([]any{}, out[i].value.([]any)...), nil)
			}
		}
	}
	return out
}

func (s Shape) typed(u use) tree {
	text := func(more ...pair) tree { return append(tree{{"type", "string"}}, more...) }
	switch s.Kind {
	case Word:
		return text(pair{"pattern", s.Pattern}, pair{"maxLength", s.Max})
	case Choice:
		return s.choice()
	case Whole:
		return tree{{"type", "integer"}, {"minimum", s.Low}, {"maximum", s.High}}
	case Decimal:
		return tree{{"type", "number"}, {"minimum", s.Low}, {"maximum", s.High}}
	case YesNo:
		return tree{{"type", "boolean"}}
	case Moment:
		return text(pair{"format", "date-time"}, pair{"maxLength", momentChars})
	case Day:
		return text(pair{"format", "date"}, pair{"maxLength", dayChars})
	case UUID:
		return text(pair{"format", "uuid"}, pair{"maxLength", uuidChars})
	case List:
		out := tree{{"type", "array"}}
		if s.Min > 0 {
			out = append(out, pair{"minItems", s.Min})
		}
		return append(out, pair{"maxItems", s.Max}, pair{"items", s.Items.schema(u)})
	case Object:
		return objectSchema(s.Members, u)
	}
	if s.Min > 0 {
		return text(pair{"minLength", s.Min}, pair{"maxLength", s.Max})
	}
	return text(pair{"maxLength", s.Max})
}

// choice writes the type beside the values where they have one.
func (s Shape) choice() tree {
	kind := ""
	for _, v := range s.Values {
		k := map[bool]string{true: "string"}[isText(v)]
		if kind == "" {
			kind = k
		}
		if k == "" || k != kind {
			return tree{{"enum", s.Values}}
		}
	}
	return tree{{"type", "string"}, {"enum", s.Values}}
}

func isText(v any) bool { _, ok := v.(string); return ok }

func objectSchema(members []Member, u use) tree {
	var required []any
	props := tree{}
	for _, m := range members {
		if m.Required {
			required = append(required, m.Name)
		}
		props = append(props, pair{m.Name, m.Shape.schema(u)})
	}
	out := tree{{"type", "object"}, {"additionalProperties", false}}
	if required != nil {
		out = append(out, pair{"required", required})
	}
	return append(out, pair{"properties", props})
}

// scalar says whether the value is one plain value.
func (s Shape) scalar() bool { return s.Kind != List && s.Kind != Object && s.Kind != 0 }

// FitsPath says whether the loader would take such an input in a path.
func (s Shape) FitsPath() bool {
	switch s.Kind {
	case Whole:
		return !strings.HasPrefix(string(s.Low), "-")
	case Choice:
		for _, v := range s.Values {
			if t, ok := v.(string); !ok || !pathWord(t) {
				return false
			}
		}
		return true
	case Word:
		return overPathAlphabet(s.Pattern)
	}
	return false
}

func pathWord(s string) bool {
	return s != "" && s != "." && s != ".." && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// overPathAlphabet says whether a pattern lets only [A-Za-z0-9._-] through.
func overPathAlphabet(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && onlyPathRunes(re)
}

func onlyPathRunes(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpEmptyMatch:
		return true
	case syntax.OpLiteral:
		return re.Flags&syntax.FoldCase == 0 && pathRunes(re.Rune, false)
	case syntax.OpCharClass:
		return pathRunes(re.Rune, true)
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat, syntax.OpConcat, syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !onlyPathRunes(sub) {
				return false
			}
		}
		return true
	}
	return false
}

func pathRunes(rs []rune, pairs bool) bool {
	if !pairs {
		return strings.Trim(string(rs), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
	}
	for i := 0; i < len(rs); i += 2 {
		for r := rs[i]; r <= rs[i+1]; r++ {
			if r > 0x7f || !pathRunes([]rune{r}, false) {
				return false
			}
		}
	}
	return true
}

// fits says whether a value satisfies the shape; both engines of the daemon are
// asked.
func (s Shape) fits(v any, u use) bool {
	doc := s.schema(u).plain()
	if len(validate.LintSchema(doc, validate.UseExpect)) > 0 {
		return false
	}
	c, err := validate.CompileSchema("shape", doc)
	return err == nil && c.Validate(v) == nil
}

// Evidence says whether the shape may leave as data: bounded and without free
// text.
func (s Shape) Evidence() bool {
	m := []Member{{Name: "x", Shape: s}}
	return s.Kind != 0 && len(validate.LintSchema(objectSchema(m, forResult).plain(), validate.UseResult)) == 0
}

// Sound says whether the shape is one that an input may have.
func (s Shape) Sound() bool {
	m := []Member{{Name: "x", Shape: s}}
	return s.Kind != 0 && len(validate.LintSchema(objectSchema(m, forInput).plain(), validate.UseInput)) == 0
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// DefaultHighNumber is DefaultHigh as JSON writes it.
const DefaultHighNumber json.Number = "1000000"

// Fits says whether a value of an answer satisfies the shape.
func (s Shape) Fits(v any) bool { return s.fits(v, forAnswer) }

// Narrow gives the member at a pointer another shape: what an answer must hold so
// that a result can be made of it.
func (s *Shape) Narrow(pointer string, to Shape) {
	name, rest, more := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	for i := range s.Members {
		m := &s.Members[i]
		switch {
		case m.Name != name:
		case more:
			m.Shape.Narrow("/"+rest, to)
		default:
			to.Null = m.Shape.Null
			m.Shape = to
		}
	}
}
