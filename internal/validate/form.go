package validate

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// FormKind is a form of text that can be read into the same kind of value as
// JSON, under rules as strict.
type FormKind uint8

// The forms. The zero value is none of them and is refused.
const (
	FormJSON      FormKind = iota + 1 // one JSON document
	FormNDJSON                        // one JSON document a line; gives an array
	FormKeyValues                     // KEY SEP VALUE a line; gives an object of texts
	FormColumns                       // words between spaces; gives an array of objects of texts
	FormLine                          // one line that a pattern matches; gives an object of its named groups
	FormText                          // any UTF-8; gives one text
	FormNone                          // no byte at all; gives nothing
)

// FormSpec is a form as a contract declares it.
type FormSpec struct {
	Kind      FormKind
	Separator string   // key_values: what stands between key and value
	Columns   []string // columns: the names, in order
	Pattern   string   // line: anchored RE2 with named groups
}

// Form reads bytes of one form. It is immutable and safe for concurrent use. A
// nil Form and the zero Form refuse everything.
type Form struct {
	spec   FormSpec
	line   *regexp.Regexp
	groups []string // of line, by number; "" for the whole match
}

const (
	formColumns   = 64 // more are no table that a person can review
	formSeparator = 8  // bytes; "=", ": " and " = " are what programs write
)

// CompileForm makes a form of its declaration.
func CompileForm(s FormSpec) (*Form, error) {
	f := &Form{spec: s}
	f.spec.Columns = slices.Clone(s.Columns)
	if (s.Separator != "") != (s.Kind == FormKeyValues) || (len(s.Columns) > 0) != (s.Kind == FormColumns) || (s.Pattern != "") != (s.Kind == FormLine) {
		return nil, errors.New("a separator belongs to key_values, names to columns and a pattern to line, each to its own only")
	}
	var err error
	switch s.Kind {
	case FormJSON, FormNDJSON, FormText, FormNone:
	case FormKeyValues:
		err = checkSeparator(s.Separator)
	case FormColumns:
		err = checkColumns(s.Columns)
	case FormLine:
		err = f.compileLine(s.Pattern)
	default:
		err = errors.New("there is no such form")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func checkSeparator(s string) error {
	if len(s) > formSeparator || strings.ContainsFunc(s, isLineTrouble) {
		return fmt.Errorf("a separator has 1 to %d bytes and no control character but a tab", formSeparator)
	}
	return nil
}

func checkColumns(names []string) error {
	if len(names) > formColumns {
		return fmt.Errorf("more than %d columns", formColumns)
	}
	for i, n := range names {
		if n == "" || len(n) > nameBytes || slices.Contains(names[:i], n) {
			return fmt.Errorf("column %d has no name of its own", i+1)
		}
	}
	return nil
}

// compileLine holds a line's pattern to its form: ^…$ around everything, every
// capturing group with a name of its own.
func (f *Form) compileLine(p string) error {
	if len(p) > patternBytes {
		return fmt.Errorf("a pattern has 1 to %d bytes", patternBytes)
	}
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return errors.New("the pattern does not compile as RE2")
	}
	if !isAnchored(tree) {
		return errors.New("the pattern must begin with ^ and end with $ for all its alternatives")
	}
	if f.line, err = regexp.Compile(p); err != nil {
		return errors.New("the pattern is too large")
	}
	f.groups = f.line.SubexpNames()
	for i, name := range f.groups[1:] {
		if name == "" || slices.Contains(f.groups[1:i+1], name) {
			return errors.New("each group of the pattern needs a name of its own: (?P<name>…); others are written (?:…)")
		}
	}
	if len(f.groups) == 1 {
		return errors.New("the pattern has no group with a name: (?P<name>…)")
	}
	return nil
}

// Read reads b. present is false only for the form none, which has no value.
// An error is a *ParseError.
func (f *Form) Read(b []byte, l Limits) (v any, present bool, err error) {
	if f == nil {
		return nil, false, (&parser{in: b, limits: l}).fail(ruleForm, 0)
	}
	switch f.spec.Kind {
	case FormJSON:
		v, err = Parse(b, l)
	case FormNDJSON:
		v, err = readNDJSON(b, l)
	case FormKeyValues:
		v, err = readKeyValues(b, f.spec.Separator, l)
	case FormColumns:
		v, err = readColumns(b, f.spec.Columns, l)
	case FormLine:
		v, err = f.readLine(b, l)
	case FormText:
		v, err = readText(b, l)
	case FormNone:
		return nil, false, readNone(b, l)
	default:
		err = (&parser{in: b, limits: l}).fail(ruleForm, 0)
	}
	if err != nil {
		return nil, false, err
	}
	return v, true, nil
}
