package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/scaffold"
	"chatelaine/internal/validate"
)

// shaper turns schemas of a description into closed and bounded shapes. What a
// schema leaves open becomes a decision of the outline, what cannot be taken is
// left out with the reason.
type shaper struct {
	d     *Document
	o     *scaffold.Outline
	input bool     // an agent would give it
	left  int      // schemas that may still be looked at
	open  []string // references that the value at hand stands in
}

const (
	// maxShapes bounds the work of one operation: references make a graph whose
	// paths can be exponentially many.
	maxShapes = 4000
	// maxNesting is deeper than any body that a person can review.
	maxNesting = 8
	maxAbout   = 120
)

// shape reads a schema. at names the place in messages; ok is false where it is
// left out, which has been said.
func (x *shaper) shape(v any, at string, depth int) (s scaffold.Shape, ok bool) {
	x.left--
	if x.left < 0 || depth > maxNesting {
		x.o.Leave(at, "it is nested too deep, or refers to itself")
		return s, false
	}
	before := len(x.open)
	defer func() { x.open = x.open[:before] }()
	if !x.enter(v) {
		x.o.Leave(at, "it refers to itself")
		return s, false
	}
	m, err := x.d.resolve(v)
	if err != nil {
		x.o.Leave(at, err.Error())
		return s, false
	}
	m, null, ok := x.flatten(m, at, depth)
	if !ok {
		return s, false
	}
	s, ok = x.typed(m, at, depth)
	s.Null = s.Null || null
	if e, has := firstExample(m); has {
		s.Example = e
	}
	return s, ok
}

func (x *shaper) typed(m object, at string, depth int) (scaffold.Shape, bool) {
	name, null := kind(m)
	if values, ok := m["enum"].([]any); ok {
		return x.choice(values, at, null)
	}
	if v, ok := m["const"]; ok {
		return x.choice([]any{v}, at, null)
	}
	var s scaffold.Shape
	var ok bool
	switch name {
	case "string":
		s, ok = x.text(m, at)
	case "integer", "number":
		s, ok = x.number(m, at, name)
	case "boolean":
		s, ok = scaffold.Shape{Kind: scaffold.YesNo}, true
	case "array":
		s, ok = x.list(m, at, depth)
	case "object":
		s, ok = x.object(m, at, depth)
	default:
		x.o.Leave(at, "the description does not say what it is")
	}
	s.Null = null
	return s, ok
}

// maxValues bounds a choice; a longer one is a list for the operator to keep.
const maxValues = 200

func (x *shaper) choice(values []any, at string, null bool) (scaffold.Shape, bool) {
	s := scaffold.Shape{Kind: scaffold.Choice, Null: null}
	for _, v := range values {
		if text, is := v.(string); is && scaffold.Hidden(text) {
			x.o.Leave(at, "one of its values holds characters that nobody sees")
			return s, false
		}
		switch v.(type) {
		case nil:
			s.Null = true
		case string, json.Number, bool:
			if !slices.ContainsFunc(s.Values, func(o any) bool { return validate.Equal(o, v) }) {
				s.Values = append(s.Values, v)
			}
		default:
			x.o.Leave(at, "one of its values is a list or an object")
			return s, false
		}
	}
	if len(s.Values) == 0 || len(s.Values) > maxValues {
		x.o.Leave(at, fmt.Sprintf("it has no value, or more than %d", maxValues))
		return s, false
	}
	return s, true
}

// textFormats are formats whose text is something else than words.
var textFormats = map[string]scaffold.Kind{"date-time": scaffold.Moment, "date": scaffold.Day, "uuid": scaffold.UUID}

// placeFormats would let an agent choose a place.
var placeFormats = []string{"uri", "url", "uri-reference", "iri", "iri-reference", "uri-template", "hostname", "idn-hostname", "ipv4", "ipv6"}

func (x *shaper) text(m object, at string) (scaffold.Shape, bool) {
	format, _ := m["format"].(string)
	if k, ok := textFormats[format]; ok {
		return scaffold.Shape{Kind: k}, true
	}
	switch {
	case x.input && slices.Contains(placeFormats, format):
		x.o.Leave(at, "a "+format+" names a place, and no agent chooses one")
		return scaffold.Shape{}, false
	case x.input && (format == "password" || format == "binary"):
		x.o.Leave(at, "no agent sends a "+map[string]string{"password": "secret", "binary": "file"}[format])
		return scaffold.Shape{}, false
	}
	most, bounded := whole(m["maxLength"], 1, 1<<20)
	least, _ := whole(m["minLength"], 0, 1<<20)
	if p, ok := m["pattern"].(string); ok {
		if s, ok := x.pattern(p, most, at); ok {
			return s, true
		}
	}
	if !bounded || most > longestText {
		most = scaffold.DefaultText
		if !x.input {
			most = longestAnswer
		} else {
			x.o.Decide("%s: the description bounds it nowhere below %d characters; %d are assumed", at, longestText, most)
		}
	}
	return scaffold.Shape{Kind: scaffold.Text, Max: most, Min: min(least, most)}, true
}

const (
	longestText   = 20000 // characters that a first draft lets an agent send
	longestAnswer = 4000  // characters of a text in an answer that nobody bounds
	longestWord   = 128   // as results have it
)

// pattern takes a pattern that a contract may have.
func (x *shaper) pattern(p string, most int, at string) (scaffold.Shape, bool) {
	if most == 0 || most > longestText {
		most = longestWord
	}
	s := scaffold.Shape{Kind: scaffold.Word, Pattern: p, Max: max(scaffold.PatternChars(p, most), 1)}
	if len(validate.LintPattern(p)) == 0 && s.Sound() {
		if _, ok := s.Sample(); ok {
			return s, true
		}
	}
	x.o.Decide("%s: its pattern is none that a contract may have; write an anchored one of listed characters", at)
	return s, false
}

func (x *shaper) number(m object, at, name string) (scaffold.Shape, bool) {
	s := scaffold.Shape{Kind: scaffold.Whole, Low: "0", High: scaffold.DefaultHighNumber}
	if name == "number" {
		s.Kind = scaffold.Decimal
	}
	if !x.input { // an answer may be larger than what an agent may say
		s.Low, s.High = "-9007199254740991", "9007199254740991"
	}
	low, hasLow := x.bound(m, "minimum", "exclusiveMinimum", at, name, 1)
	high, hasHigh := x.bound(m, "maximum", "exclusiveMaximum", at, name, -1)
	if hasLow {
		s.Low = low
	}
	if hasHigh {
		s.High = high
	}
	if hasLow && hasHigh && validate.Compare(low, high) > 0 {
		x.o.Leave(at, "its bounds let no number through")
		return s, false
	}
	if validate.Compare(s.Low, s.High) > 0 { // one of the two was assumed
		s.Low, s.High = min2(low, hasLow, high), max2(high, hasHigh, low)
	}
	if x.input && (!hasLow || !hasHigh) {
		x.o.Decide("%s: the description gives it no %s; from %s to %s is assumed", at, missing(hasLow, hasHigh), s.Low, s.High)
	}
	return s, true
}

func min2(low json.Number, has bool, other json.Number) json.Number {
	if has {
		return low
	}
	return other
}

func max2(high json.Number, has bool, other json.Number) json.Number {
	if has {
		return high
	}
	return other
}

func missing(low, high bool) string {
	switch {
	case !low && !high:
		return "bounds"
	case !low:
		return "lower bound"
	}
	return "upper bound"
}

// bound reads a bound as both versions write it: in 3.1 the exclusive one is a
// number, in 3.0 a word beside the other. step leads from an excluded whole number
// to the next one that is allowed.
func (x *shaper) bound(m object, plain, exclusive, at, name string, step int64) (json.Number, bool) {
	n, has := m[plain].(json.Number)
	e, excluded := m[exclusive].(json.Number)
	switch {
	case excluded && (!has || validate.Compare(e, n)*int(step) >= 0):
		n = e
	case m[exclusive] == true && has:
		excluded = true
	default:
		return n, has
	}
	if i, err := n.Int64(); err == nil && name == "integer" {
		return json.Number(strconv.FormatInt(i+step, 10)), true
	}
	x.o.Decide("%s: the description leaves %s itself out; write %s where that matters", at, n, exclusive)
	return n, true
}

func (x *shaper) list(m object, at string, depth int) (scaffold.Shape, bool) {
	item, ok := x.shape(m["items"], at+"[]", depth+1)
	if !ok {
		return scaffold.Shape{}, false
	}
	most, bounded := whole(m["maxItems"], 1, 10000)
	least, _ := whole(m["minItems"], 0, 10000)
	if !bounded {
		most = longestList
		if x.input {
			most = scaffold.DefaultItems
			x.o.Decide("%s: the description bounds the list nowhere; %d elements are assumed", at, most)
		} else {
			x.o.Decide("%s: the description bounds the list nowhere; an answer with more than %d elements is refused", at, most)
		}
	}
	return scaffold.Shape{Kind: scaffold.List, Min: min(least, most), Max: most, Items: &item}, true
}

const longestList = 200

func whole(v any, low, high int) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	if err != nil || i < int64(low) {
		return 0, false
	}
	return int(min(i, int64(high))), true
}

// object closes an object: its named members and no others.
func (x *shaper) object(m object, at string, depth int) (scaffold.Shape, bool) {
	s := scaffold.Shape{Kind: scaffold.Object}
	props, _ := m["properties"].(object)
	if len(props) == 0 && m["additionalProperties"] != false {
		x.o.Leave(at, "the description lets it hold anything; write the members that the task needs")
		return s, false
	}
	if open := m["additionalProperties"]; open != nil && open != false {
		x.o.Decide("%s: the description lets it hold members of any name; the draft has only the named ones", at)
	}
	required, _ := m["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if x.skips(props[name], name, at) {
			continue
		}
		sub, ok := x.shape(props[name], at+"."+clean(name), depth+1)
		if !ok {
			continue // said already
		}
		s.Members = append(s.Members, scaffold.Member{Name: name, Required: slices.Contains(required, any(name)), About: x.about(props[name]), Shape: sub})
	}
	if len(s.Members) == 0 && len(props) > 0 {
		x.o.Leave(at, "nothing of it can be taken")
		return s, false
	}
	return s, true
}

// skips says whether a member is not for this direction, or not for an agent.
func (x *shaper) skips(v any, name, at string) bool {
	m, err := x.d.resolve(v)
	if err == nil && m[map[bool]string{true: "readOnly", false: "writeOnly"}[x.input]] == true {
		return true
	}
	if !x.input {
		return false
	}
	if why := refusedName(name); why != "" {
		x.o.Leave(at+"."+clean(name), why)
		return true
	}
	return false
}

// refusedName says why no input may have a name, "" where it may.
func refusedName(name string) string {
	if w := actions.ForbiddenInputWord(name); w != "" {
		return fmt.Sprintf("its name has the word %q: what it would choose belongs to the operator's target", w)
	}
	if actions.ForbiddenMember(name) {
		return "no input is sent under this name: a service may run or follow it"
	}
	if !actions.IsInputName(name) {
		return "its name is no name of an input"
	}
	return ""
}

func (x *shaper) about(v any) string {
	m, err := x.d.resolve(v)
	if err != nil {
		return ""
	}
	text, _ := m["description"].(string)
	return shortLine(text)
}

var spaces = regexp.MustCompile(`\s+`)

// shortLine is the beginning of a stranger's text; scaffold takes out what steers.
func shortLine(s string) string {
	s = strings.TrimSpace(spaces.ReplaceAllString(s[:min(len(s), 4*maxAbout)], " "))
	if rs := []rune(strings.ToValidUTF8(s, "")); len(rs) > maxAbout {
		return string(rs[:maxAbout]) + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// clean makes a stranger's name fit a message.
func clean(name string) string { return short(spaces.ReplaceAllString(name, " ")) }

// firstExample is an example of a schema, a parameter or a media type.
func firstExample(m object) (any, bool) {
	if e, ok := m["example"]; ok && e != nil {
		return e, true
	}
	switch list := m["examples"].(type) {
	case []any:
		if len(list) > 0 && list[0] != nil {
			return list[0], true
		}
	case object:
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if e, ok := list[name].(object); ok && e["value"] != nil {
				return e["value"], true
			}
		}
	}
	if e, ok := m["default"]; ok && e != nil {
		return e, true
	}
	return nil, false
}
