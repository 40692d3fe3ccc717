package actions

import (
	"encoding/json"
	"regexp/syntax"
	"strconv"
)

// Bounds of the text that one answer may carry in pieces.
const (
	// maxPieces is the sum of all strings that may hold words: half of a page,
	// and the names of sixteen longest objects.
	maxPieces = 1024
	// maxShortPieces is the same for lists of pieces of at most shortPiece
	// characters, which only make sense when read one after the other.
	maxShortPieces = 128
	shortPiece     = 8
	// wordLetters is how much of the alphabet a piece needs to spell words: a
	// hexadecimal digest has six letters.
	wordLetters = 13
)

// pieces wants data to have no room for a text in pieces.
func (l *linter) pieces() {
	m := measure{view: schemaView{root: l.c.resultDoc}, seen: map[string]bool{}}
	total := m.room(l.c.resultDoc, 1, refDepth)
	if total > maxPieces {
		l.say("result-in-pieces", l.at("result", ""), "give strings an enum or a narrower pattern, lists a smaller maxItems, or put the text under display",
			"the strings of one answer that may hold words have %d characters together; the most is %d", total, maxPieces)
	}
	for _, short := range m.short {
		l.say("result-in-pieces", l.at("result", ""), "give the pieces an enum of whole words, or the list a smaller maxItems",
			"a list of pieces of at most %d characters has %d of them; the most is %d", shortPiece, short, maxShortPieces)
	}
}

// measure adds up the room for words in a schema.
type measure struct {
	view  schemaView
	short []int
	seen  map[string]bool
}

// room is the number of characters that may spell words in a value, times
// stands for how often the value may stand there. Every branch is counted.
func (m *measure) room(s map[string]any, times, depth int) int {
	if s == nil || depth == 0 || times > maxPieces*maxPieces {
		return 0
	}
	s = m.view.resolve(s)
	total := m.text(s, times)
	props, _ := s["properties"].(map[string]any)
	for _, name := range sortedKeys(props) {
		total += m.room(asSchema(props[name]), times, depth-1)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for _, sub := range list {
			total += m.room(asSchema(sub), times, depth-1)
		}
	}
	for _, key := range []string{"then", "else"} {
		total += m.room(asSchema(s[key]), times, depth-1)
	}
	if items := asSchema(s["items"]); items != nil {
		total += m.room(items, times*max(number64(s["maxItems"]), 1), depth-1)
	}
	return total
}

func asSchema(v any) map[string]any {
	s, _ := v.(map[string]any)
	return s
}

// text is the room of one string. An enum of single letters is an alphabet.
func (m *measure) text(s map[string]any, times int) int {
	if list, ok := s["enum"].([]any); ok {
		letters := 0
		for _, v := range list {
			if t, text := v.(string); text && len(t) <= 2 {
				letters++
			}
		}
		if letters >= wordLetters && times > maxShortPieces/2 {
			m.short = append(m.short, 2*times)
		}
		return 0
	}
	pattern, _ := s["pattern"].(string)
	if schemaKind(s) != kindText || pattern == "" || !spellsWords(pattern) {
		return 0
	}
	length := number64(s["maxLength"])
	if length <= shortPiece && times > 1 && length*times > maxShortPieces {
		m.short = append(m.short, length*times)
	}
	return length * times
}

// number64 reads a count of a schema, 0 where there is none.
func number64(v any) int {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	i, err := strconv.Atoi(n.String())
	if err != nil || i < 0 {
		return 0
	}
	return min(i, maxPieces*maxPieces)
}

// spellsWords says whether one place of a pattern takes half of the alphabet.
func spellsWords(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err != nil || wordClass(re)
}

func wordClass(re *syntax.Regexp) bool {
	if re.Op == syntax.OpCharClass {
		letters := map[rune]bool{}
		for r := 'a'; r <= 'z'; r++ {
			for i := 0; i+1 < len(re.Rune); i += 2 {
				upper := r - 'a' + 'A'
				if r >= re.Rune[i] && r <= re.Rune[i+1] || upper >= re.Rune[i] && upper <= re.Rune[i+1] {
					letters[r] = true
				}
			}
		}
		return len(letters) >= wordLetters
	}
	for _, sub := range re.Sub {
		if wordClass(sub) {
			return true
		}
	}
	return false
}
