package validate

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// patternBytes bounds a pattern; longer ones are programs.
const patternBytes = 1024

// LintPattern says why a pattern may not be used in a contract; nothing means
// that it may. A pattern is anchored at both ends and written in the part of
// RE2 that ECMA 262 reads the same way, without the classes that differ there
// or that name what is forbidden instead of what is allowed.
func LintPattern(p string) []string {
	if _, ok := keptPattern(p); ok {
		return nil
	}
	if p == "" || len(p) > patternBytes {
		return []string{"a pattern has 1 to 1024 bytes"}
	}
	tree, err := parsePattern(p)
	if err != nil {
		return []string{patternTrouble(p)}
	}
	re, err := regexp.Compile(p)
	if err != nil {
		return []string{"the pattern is too large"}
	}
	var out []string
	if !isAnchored(tree) {
		out = append(out, "the pattern must begin with ^ and end with $ for all its alternatives")
	}
	out = append(out, scanPattern(p)...)
	if len(out) == 0 && isCostly(tree) {
		out = append(out, costComplaint)
	}
	if len(out) == 0 {
		keepPattern(p, re)
	}
	return out
}

func parsePattern(p string) (*syntax.Regexp, error) { return syntax.Parse(p, syntax.Perl) }

// isAnchored says that the whole is ^…$, with no further anchor inside.
func isAnchored(r *syntax.Regexp) bool {
	if r.Op != syntax.OpConcat || len(r.Sub) < 2 {
		return false
	}
	last := len(r.Sub) - 1
	return r.Sub[0].Op == syntax.OpBeginText && r.Sub[last].Op == syntax.OpEndText && !anyOp(r.Sub[1:last], isAssertion)
}

func isAssertion(op syntax.Op) bool {
	switch op {
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return false
}

func anyOp(list []*syntax.Regexp, is func(syntax.Op) bool) bool {
	for _, r := range list {
		if is(r.Op) || anyOp(r.Sub, is) {
			return true
		}
	}
	return false
}

// patternScan reads the text of a pattern, because the parse tree no longer
// tells how a class was written.
type patternScan struct {
	p   string
	i   int
	out []string
}

func scanPattern(p string) []string {
	s := &patternScan{p: p}
	for s.i < len(p) {
		s.next()
	}
	return s.out
}

func (s *patternScan) bad(why string) {
	for _, o := range s.out {
		if o == why {
			return
		}
	}
	s.out = append(s.out, why)
}

func (s *patternScan) at(prefix string) bool { return strings.HasPrefix(s.p[s.i:], prefix) }

func (s *patternScan) next() {
	c := s.p[s.i]
	switch {
	case c == '\\':
		s.escape(false)
		return
	case c == '[':
		s.class()
		return
	case c == '.':
		s.bad(". matches nearly anything, and line ends differently elsewhere; list the characters")
	case c == '(' && s.at("(?") && !s.at("(?:"):
		s.bad("of the groups only (…) and (?:…) are allowed")
	case c == '{':
		s.repeat()
		return
	case c == '}' || c == ']':
		s.bad("a bracket that closes nothing must be written with a backslash")
	case c < 0x20 || c == 0x7f:
		s.bad("no control character may stand in a pattern")
	}
	s.i++
}

var repeatForm = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

func (s *patternScan) repeat() {
	m := repeatForm.FindString(s.p[s.i:])
	if m == "" {
		s.bad("a brace that is no repetition must be written with a backslash")
		s.i++
		return
	}
	s.i += len(m)
}

// syntaxCharacters are what both dialects let stand after a backslash as
// themselves.
const syntaxCharacters = `^$\.*+?()[]{}|/`

func (s *patternScan) escape(inClass bool) {
	c := byte(0)
	if s.i+1 < len(s.p) {
		c = s.p[s.i+1]
	}
	switch {
	case strings.IndexByte(syntaxCharacters, c) >= 0, c == '-' && inClass:
	case c == 'd' || c == 'w':
	case c == 'D' || c == 'W' || c == 's' || c == 'S':
		s.bad(`\D, \W, \s and \S differ between dialects or name what is forbidden; list the characters`)
	default:
		s.bad(`of the escapes only \d, \w and those of syntax characters are allowed`)
	}
	s.i += 2
}

func (s *patternScan) class() {
	s.i++
	if s.at("^") {
		s.bad("a negated class names what is forbidden; list what is allowed")
		s.i++
	}
	for first := true; s.i < len(s.p); first = false {
		switch c := s.p[s.i]; {
		case c == ']' && first:
			s.bad("an empty class, or a bracket without its backslash")
		case c == ']':
			s.i++
			return
		case c == '\\':
			s.escape(true)
			continue
		case c == '[':
			s.bad("an opening bracket inside a class must be written with a backslash")
		case s.at("&&") || s.at("--") || s.at("~~"):
			s.bad("a doubled sign inside a class is an operator elsewhere")
		case c == '-' && !first && !s.at("-]"):
			s.rangeEnd()
			continue
		case c < 0x20 || c == 0x7f:
			s.bad("no control character may stand in a pattern")
		}
		s.i++
	}
}

// rangeEnd reads the - of a range; neither end may be a class such as \d.
func (s *patternScan) rangeEnd() {
	before, after := s.p[:s.i], s.p[s.i+1:]
	for _, class := range []string{`\d`, `\w`} {
		if strings.HasSuffix(before, class) && !strings.HasSuffix(before, `\`+class) || strings.HasPrefix(after, class) {
			s.bad(`a range cannot begin or end with \d or \w`)
		}
	}
	s.i++
}

// unbounded is the length of a pattern that has no longest match.
const unbounded = -1

// longestMatch gives the most characters that an anchored pattern matches, or
// unbounded.
func longestMatch(p string) int {
	tree, err := parsePattern(p)
	if err != nil || !isAnchored(tree) {
		return unbounded
	}
	return longest(tree)
}

// LongestMatch says how many characters the texts that an anchored pattern
// matches have at most; false where there is no such number.
func LongestMatch(pattern string) (int, bool) {
	n := longestMatch(pattern)
	return n, n >= 0
}

func longest(r *syntax.Regexp) int {
	switch r.Op {
	case syntax.OpLiteral:
		return len(r.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpQuest:
		return longest(r.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		return unbounded
	case syntax.OpRepeat:
		if n := longest(r.Sub[0]); r.Max >= 0 && n >= 0 {
			return n * r.Max
		}
		return unbounded
	case syntax.OpConcat, syntax.OpAlternate:
		return longestOf(r)
	case syntax.OpNoMatch, syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText:
		return 0
	}
	return unbounded
}

func longestOf(r *syntax.Regexp) int {
	total := 0
	for _, sub := range r.Sub {
		n := longest(sub)
		switch {
		case n < 0:
			return unbounded
		case r.Op == syntax.OpConcat:
			total += n
		default:
			total = max(total, n)
		}
	}
	return total
}

// listedRunes bounds a class of a result's pattern: more is no list.
const listedRunes = 256

// isWordPattern says that a pattern matches only listed, visible characters
// without a space: text that cannot be a sentence.
func isWordPattern(p string) bool {
	tree, err := parsePattern(p)
	return err == nil && wordsOnly(tree)
}

func wordsOnly(r *syntax.Regexp) bool {
	switch r.Op {
	case syntax.OpLiteral:
		for _, c := range r.Rune {
			if !isWordRune(c) {
				return false
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false
	case syntax.OpCharClass:
		return listed(r.Rune)
	}
	for _, sub := range r.Sub {
		if !wordsOnly(sub) {
			return false
		}
	}
	return true
}

func listed(ranges []rune) bool {
	total := 0
	for i := 0; i+1 < len(ranges); i += 2 {
		if total += int(ranges[i+1]-ranges[i]) + 1; total > listedRunes {
			return false
		}
		for c := ranges[i]; c <= ranges[i+1]; c++ {
			if !isWordRune(c) {
				return false
			}
		}
	}
	return true
}

// isWordRune takes letters, marks, digits, punctuation and symbols: everything
// visible that is no space.
func isWordRune(c rune) bool {
	return unicode.IsGraphic(c) && !unicode.IsSpace(c) && !isHangulFiller(c)
}

// isHangulFiller names letters that show as nothing.
func isHangulFiller(c rune) bool {
	return c == 0x115f || c == 0x1160 || c == 0x3164 || c == 0xffa0 || c == 0x2800
}
