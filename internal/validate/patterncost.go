package validate

import (
	"fmt"
	"regexp/syntax"
)

// patternPlaces bounds in how many places of a pattern one text can be at once.
// Every character costs that many steps: with 64 the longest answer takes about
// a second, with the 900 of ^(a{0,30}){0,30}b$ it takes fifteen.
const patternPlaces = 64

// costComplaint is what LintPattern says about a pattern beyond patternPlaces.
var costComplaint = fmt.Sprintf("one text could be read in more than %d places of this pattern at once, and each character costs as many steps; "+
	"write no repetition inside a repetition, and none beside another over the same characters", patternPlaces)

// isCostly says whether some text may be in more than patternPlaces places of a
// compiled pattern at once. It follows pairs of places that one text leads to;
// places that are all in pairs with each other may be those of one text. So it
// may refuse what no text does, and never takes what one does.
func isCostly(tree *syntax.Regexp) bool {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return true
	}
	w := pairWalk{prog: prog, partners: map[uint32]map[uint32]bool{}, next: map[uint32][]uint32{}}
	return w.walk() || w.crowded()
}

// pairWalk walks the pairs of places that the same text leads to.
type pairWalk struct {
	prog     *syntax.Prog
	partners map[uint32]map[uint32]bool
	next     map[uint32][]uint32 // places after an instruction, without reading
	todo     [][2]uint32
	pairs    int
	steps    int
}

// pairSteps bounds the work over one pattern. The largest that anybody would
// review takes a tenth of it.
const pairSteps = 1 << 19

// walk ends early where there are more pairs than a pattern below the bound
// can have: each place would be in 2*patternPlaces of them on the average.
func (w *pairWalk) walk() bool {
	w.add(uint32(w.prog.Start), uint32(w.prog.Start))
	for len(w.todo) > 0 {
		if w.pairs > 2*patternPlaces*len(w.prog.Inst) || w.steps > pairSteps {
			return true
		}
		pair := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		a, b := &w.prog.Inst[pair[0]], &w.prog.Inst[pair[1]]
		if meet(a, b) {
			w.add(a.Out, b.Out)
		}
	}
	return false
}

// add joins every place reached from a with every one reached from b.
func (w *pairWalk) add(a, b uint32) {
	for _, p := range w.after(a) {
		for _, q := range w.after(b) {
			w.steps++
			if w.partners[p][q] {
				continue
			}
			if w.partners[p] == nil {
				w.partners[p] = map[uint32]bool{}
			}
			w.partners[p][q] = true
			w.pairs++
			w.todo = append(w.todo, [2]uint32{p, q})
		}
	}
}

// crowded takes places with few partners away, again and again. Where more than
// patternPlaces places are all in pairs with each other, they remain.
func (w *pairWalk) crowded() bool {
	var few []uint32
	for p, qs := range w.partners {
		if len(qs) <= patternPlaces {
			few = append(few, p)
		}
	}
	for len(few) > 0 {
		p := few[len(few)-1]
		few = few[:len(few)-1]
		for q := range w.partners[p] {
			if q == p {
				continue
			}
			if delete(w.partners[q], p); len(w.partners[q]) == patternPlaces {
				few = append(few, q)
			}
		}
		delete(w.partners, p)
	}
	return len(w.partners) > 0
}

// after lists the instructions that read a character and are reached from pc
// without reading one. Anchors are taken as if they held.
func (w *pairWalk) after(pc uint32) []uint32 {
	if out, ok := w.next[pc]; ok {
		return out
	}
	out := []uint32{}
	seen := map[uint32]bool{}
	todo := []uint32{pc}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		in := &w.prog.Inst[at]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			out = append(out, at)
		}
	}
	w.next[pc] = out
	return out
}

// meet says whether one character can be read by both instructions. A dot takes
// every character; it stands in no pattern of a contract.
func meet(a, b *syntax.Inst) bool {
	if len(a.Rune) == 0 || len(b.Rune) == 0 {
		return true
	}
	for i := 0; i < len(a.Rune); i += 2 {
		for j := 0; j < len(b.Rune); j += 2 {
			if a.Rune[i] <= high(b.Rune, j) && b.Rune[j] <= high(a.Rune, i) {
				return true
			}
		}
	}
	return false
}

// high is the last rune of the range at i; a single rune is a range by itself.
func high(runes []rune, i int) rune {
	if i+1 < len(runes) {
		return runes[i+1]
	}
	return runes[i]
}
