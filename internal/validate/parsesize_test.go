package validate

import (
	"slices"
	"strings"
	"testing"
)

// The look ahead counts what the parser will read, and is never far off where
// there is nothing to read.
func TestLookAhead(t *testing.T) {
	l := AnswerLimits()
	for in, want := range map[string][]uint16{
		``: nil, `1`: nil, `"[{"`: {}, `[]`: {0}, `{}`: {0}, `[1]`: {1}, ` [ 1 , 2 ] `: {2},
		`{"a":1,"b":[1,2,3],"c":{"d":null}}`: {3, 3, 1},
		`[[],[[]],{}]`:                       {3, 0, 1, 0, 0},
		`["a,b]","\"],[",{"x:y,":1}]`:        {3, 1},
		`["\\",1]`:                           {2},
		// What is no document.
		`[,,,,`: {0}, `[1,,2`: {2}, `{,:,:,`: {0}, `{"a":"b":"c"`: {1}, `{"a","b","c"}`: {0}, `]]`: {}, `[1]]`: {1},
		`["open`: {1}, `["\`: {1}, `[[1,2`: {1, 2}, `[1][2]`: {1},
	} {
		if got := lookAhead([]byte(in), l); !slices.Equal(got, want) {
			t.Errorf("%s: counted %v, want %v", in, got, want)
		}
	}
	// An object cannot have more members than fit between its braces.
	if got := lookAhead([]byte("{"+strings.Repeat(`"":1,`, 1000)), l); got[0] > 5*1000/memberBytes {
		t.Errorf("counted %d", got[0])
	}
	if got := lookAhead([]byte("{"+strings.Repeat(`"":1,`, smallObject+4)), l); int(got[0]) >= smallObject+4 {
		t.Errorf("counted %d", got[0])
	}
	deep := strings.Repeat("[", l.Depth+10)
	if got := lookAhead([]byte(deep), l); len(got) != l.Depth {
		t.Errorf("counted %d lists inside one another", len(got))
	}
	many := "[" + strings.Repeat("[],", l.Nodes+10)
	if got := lookAhead([]byte(many), l); len(got) != l.Nodes {
		t.Errorf("counted %d lists", len(got))
	}
}

// FuzzLookAhead holds the look ahead to the parser: of a document that is read, it
// has counted every list and object, and every value in them, but for objects of
// more members than could be told.
func FuzzLookAhead(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,{"b":{}},"x,]"],"c":"{"}`, `[[[]],{"":{}}]`, `[1,`, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`,
		`["\\\"",1]`, " [ { } , null ]\n", `"[{,:"`, `[true,false,-1.5e3]`, `{"a":{"a":{"a":[]}}}`, "[\x00]", `[1]]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &parser{in: b, limits: AnswerLimits()}
		if p.whole() != nil {
			return
		}
		p.sizes = lookAhead(b, p.limits)
		p.space()
		v, err := p.value()
		if err != nil {
			return
		}
		sum := 0
		for _, n := range p.sizes[:min(p.opened, len(p.sizes))] {
			sum += int(n)
		}
		lists, wide := containers(v)
		if p.opened != lists || sum > p.nodes-1 || !wide && sum != p.nodes-1 {
			t.Fatalf("%q: %d lists and objects with %d values; %d were met, and %d values counted", b, lists, p.nodes-1, p.opened, sum)
		}
	})
}

// containers counts the lists and objects of a value, and says whether an object
// has more members than a small map.
func containers(v any) (n int, wide bool) {
	add := func(v any) {
		m, w := containers(v)
		n, wide = n+m, wide || w
	}
	switch x := v.(type) {
	case map[string]any:
		n, wide = 1, len(x) > smallObject
		for _, e := range x {
			add(e)
		}
	case []any:
		n = 1
		for _, e := range x {
			add(e)
		}
	}
	return n, wide
}

// An object that is made with its size in mind asks for less than one that grows.
func TestNewObject(t *testing.T) {
	names := make([]string, smallObject*5)
	for i := range names {
		names[i] = strings.Repeat("n", i)
	}
	fill := func(m map[string]any) {
		for _, name := range names {
			m[name] = nil
		}
	}
	sized := testing.AllocsPerRun(10, func() { fill(newObject(len(names))) })
	grown := testing.AllocsPerRun(10, func() { fill(newObject(0)) })
	if sized >= grown {
		t.Errorf("%.0f allocations with the size, %.0f without", sized, grown)
	}
}
