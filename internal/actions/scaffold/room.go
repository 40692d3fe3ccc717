package scaffold

import (
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// maxRoom is how many characters of words the data of one answer may hold
	// together, as the lint has it: more of them would make a text in pieces.
	maxRoom = 1024
	// maxShortRoom is the same for lists of words of at most shortWord characters.
	maxShortRoom = 128
	shortWord    = 8
)

// room is how many characters of words a value may hold.
func (s Shape) room() int {
	switch s.Kind {
	case Word:
		return s.Max
	case List:
		return s.Max * s.Items.room()
	case Object:
		total := 0
		for _, m := range s.Members {
			total += m.Shape.room()
		}
		return total
	}
	return 0
}

// pieces says whether a list of words only makes sense when it is read in a row.
func (s Shape) pieces() bool {
	return s.Kind == List && s.Items.Kind == Word && s.Items.Max <= shortWord && s.room() > maxShortRoom
}

// narrow leaves out what would make a text in pieces, the last words first.
func (o *Outline) narrow() {
	left := maxRoom
	kept := o.Outputs[:0]
	for _, x := range o.Outputs {
		for x.Each != nil && x.Shape.room() > left && o.dropWord(&x) {
		}
		if x.Shape.room() > left || x.Shape.pieces() || x.Each != nil && len(x.Each) == 0 {
			o.Leave("result."+x.Name, "its words could hold a text in pieces; give it an enum or a narrower pattern, or fewer elements")
			continue
		}
		left -= x.Shape.room()
		kept = append(kept, x)
	}
	o.Outputs = kept
}

// dropWord takes the last word out of the elements of a list.
func (o *Outline) dropWord(x *Output) bool {
	for i := len(x.Each) - 1; i >= 0; i-- {
		if x.Each[i].Shape.Kind != Word {
			continue
		}
		o.Leave("result."+x.Name+"[]."+x.Each[i].Name, "the words of so many elements could hold a text in pieces")
		item := *x.Shape.Items
		x.Each = append(append([]Output{}, x.Each[:i]...), x.Each[i+1:]...)
		item.Members = append(append([]Member{}, item.Members[:i]...), item.Members[i+1:]...)
		x.Shape.Items = &item
		return true
	}
	return false
}

// PatternChars is the most characters that a pattern matches, and most where it
// has no end.
func PatternChars(pattern string, most int) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return most
	}
	return min(longest(re, most), most)
}

// longest stops counting at most.
func longest(re *syntax.Regexp, most int) int {
	total := 0
	switch re.Op {
	case syntax.OpLiteral:
		return utf8.RuneCountInString(string(re.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpStar, syntax.OpPlus:
		return most
	case syntax.OpQuest, syntax.OpCapture:
		return longest(re.Sub[0], most)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return most
		}
		return min(re.Max*longest(re.Sub[0], most), most)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			total = min(total+longest(sub, most), most)
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			total = max(total, longest(sub, most))
		}
	}
	return total
}
