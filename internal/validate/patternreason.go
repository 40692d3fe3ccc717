package validate

import "regexp"

// foreign are parts of ECMA 262 patterns that RE2 does not have, each with the
// reason. They are looked for in a pattern that RE2 does not parse.
var foreign = []struct {
	part *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`\(\?<?[=!]`), "RE2 has no look-ahead and no look-behind, because they make the time of a match unbounded; list what may stand there"},
	{regexp.MustCompile(`\\[1-9]|\\k<`), "RE2 has no back references, because they make the time of a match unbounded; compare two values with a check instead"},
	{regexp.MustCompile(`\\u\{?[0-9A-Fa-f]`), `RE2 has no \u escape; write the character itself`},
	{regexp.MustCompile(`\\c[A-Za-z]`), `RE2 has no \c escape; control characters stand in no pattern here`},
	{regexp.MustCompile(`[*+?}][+]`), "RE2 has no possessive repetition; a plain one costs no more here"},
	{regexp.MustCompile(`\(\?>`), "RE2 has no atomic group; a plain one costs no more here"},
	{regexp.MustCompile(`\[\[:|\\p|\\P`), "this class is not one that RE2 knows; list the characters"},
	{regexp.MustCompile(`\{[0-9]*,?[0-9]{4,}`), "RE2 repeats at most 1000 times"},
}

// patternTrouble says why a pattern does not parse.
func patternTrouble(p string) string {
	for _, f := range foreign {
		if f.part.MatchString(p) {
			return f.why
		}
	}
	return "the pattern does not compile: a bracket without its partner, a repetition of nothing, or repetitions of more than 1000 in all"
}
