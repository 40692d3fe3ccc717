package validate

import (
	"fmt"
	"sync"
	"testing"
)

// Equal documents share what was compiled, and keep their own names and
// spellings; different ones never do, however many there are.
func TestKeptSchemas(t *testing.T) {
	a, err := CompileSchema("a", mustParse(t, `{"type":"integer","minimum":1.0,"maximum":77}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := CompileSchema("b", mustParse(t, `{"maximum":77,"minimum":1,"type":"integer"}`))
	if err != nil {
		t.Fatal(err)
	}
	if a.first != b.first || a.second != b.second || a.name == b.name {
		t.Error("equal documents are compiled twice, or share a name")
	}
	if fmt.Sprint(a.Doc()) == fmt.Sprint(b.Doc()) {
		t.Error("the second document has the spelling of the first")
	}
	var running sync.WaitGroup
	for i := range 2*schemasKept + 7 {
		running.Go(func() {
			s, err := CompileSchema("n", mustParse(t, fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, i, i+1)))
			if err != nil || s.Validate(mustParse(t, fmt.Sprint(i))) != nil || s.Validate(mustParse(t, fmt.Sprint(i+2))) == nil {
				t.Errorf("schema %d is not its own: %v", i, err)
			}
		})
	}
	running.Wait()
	kept.Lock()
	defer kept.Unlock()
	if len(kept.byDigest) > schemasKept {
		t.Errorf("%d schemas are kept", len(kept.byDigest))
	}
}

// A schema takes over another one's document only where every spelling in it is
// the same, at any depth.
func TestIdentical(t *testing.T) {
	texts := []string{`[]`, `{}`, `""`, `null`, `1`, `1.0`, `[1]`, `[1.0]`, `[1,2]`, `{"a":1}`, `{"a":1.0}`, `{"a":[1]}`, `{"a":[1.0]}`, `{"b":1}`, `"1"`, `true`, `false`}
	for i, a := range texts {
		for j, b := range texts {
			if identical(mustParse(t, a), mustParse(t, b)) != (i == j) {
				t.Errorf("%s and %s: identical is %v", a, b, i != j)
			}
		}
	}
}

// A deferred schema is guarded at once, checks like any other, and refuses
// everything where the engines do not take it.
func TestDeferredSchema(t *testing.T) {
	if _, err := DeferSchema("x", mustParse(t, `{"type":"string","maxlength":3}`)); err == nil {
		t.Error("the guard was not asked")
	}
	s, err := DeferSchema("x", mustParse(t, `{"type":"string","maxLength":3}`))
	if err != nil || !s.Usable() || s.Validate("abc") != nil || s.Validate("abcd") == nil || s.validateParsed("abcd") == nil {
		t.Errorf("a deferred schema checks otherwise: %v", err)
	}
	broken := &Schema{name: "x", later: func() *Schema { return nil }}
	if broken.Usable() || broken.Validate("abc") == nil || broken.validateParsed("abc") == nil {
		t.Error("what no engine takes accepts something")
	}
	if (*Schema)(nil).Usable() || (&Schema{}).Usable() {
		t.Error("nothing is usable")
	}
}
