//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/validate"
)

// group is one schema of the suite with its tests.
type group struct {
	file        string          // below the folder of the draft
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// suite reads both states of the suite; what the later one repeats is left out.
func suite(t *testing.T) []group {
	t.Helper()
	var out []group
	seen := map[string]bool{}
	for _, dir := range []string{
		filepath.Join(schemaSuite.dir(t), "tests", "draft2020-12"),
		filepath.Join(schemaSuiteLater.dir(t), "draft2020-12"),
	} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var groups []group
			if err := json.Unmarshal(raw, &groups); err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			for _, g := range groups {
				g.file = filepath.ToSlash(rel)
				g.dropSeen(seen)
				if len(g.Tests) > 0 {
					out = append(out, g)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(out, func(a, b group) int { return strings.Compare(a.file, b.file) })
	return out
}

func (g *group) dropSeen(seen map[string]bool) {
	kept := g.Tests[:0]
	for _, one := range g.Tests {
		key := fmt.Sprintf("%s %s %s %v", g.file, compact(g.Schema), compact(one.Data), one.Valid)
		if !seen[key] {
			seen[key] = true
			kept = append(kept, one)
		}
	}
	g.Tests = kept
}

func compact(raw json.RawMessage) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // 1 and 1.0 are two tests
	if d.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

func (g group) optional() bool { return strings.HasPrefix(g.file, "optional/") }
func (g group) formats() bool  { return strings.HasPrefix(g.file, "optional/format/") }

// The suite as we count it, repeats left out; a smaller one would prove less
// and say nothing.
const (
	suiteRequired = 1246
	suiteOptional = 624
)

func TestSuiteIsWhole(t *testing.T) {
	required, optional := 0, 0
	for _, g := range suite(t) {
		if g.optional() {
			optional += len(g.Tests)
		} else {
			required += len(g.Tests)
		}
	}
	if required != suiteRequired || optional != suiteOptional {
		t.Errorf("%d required and %d optional tests, want %d and %d", required, optional, suiteRequired, suiteOptional)
	}
}

// tally counts what became of the tests of one file.
type tally struct {
	groups, asWritten, rewritten, refused int
	tests, right, tooStrict               int
	rules                                 map[string]bool
}

// TestSuiteThroughOurDoor runs every group that the guard takes, as it is
// written or rewritten to mean the same. Nothing may be accepted that the suite
// refuses. What we refuse although the suite accepts it must stand in stricter.
func TestSuiteThroughOurDoor(t *testing.T) {
	files := map[string]*tally{}
	used := map[string]bool{}
	var strict []string // rows
	for _, g := range suite(t) {
		f := files[g.file]
		if f == nil {
			f = &tally{rules: map[string]bool{}}
			files[g.file] = f
		}
		f.groups++
		s := f.door(t, g)
		if s == nil {
			continue
		}
		for _, one := range g.Tests {
			f.tests++
			place := g.file + ": " + g.Description + ": " + one.Description
			accepted, why := through(s, one.Data)
			switch {
			case accepted == one.Valid:
				f.right++
			case accepted:
				t.Errorf("accepted and must be refused: %s", place)
			default:
				f.tooStrict++
				strict = append(strict, fmt.Sprintf("| `%s` | %s: %s | %s |", g.file, cell(g.Description), cell(one.Description), stricter[g.file]))
				used[g.file] = true
				if stricter[g.file] == "" {
					t.Errorf("refused (%s) and should be accepted, with no reason given in stricter: %s", why, place)
				}
			}
		}
	}
	for file := range stricter {
		if !used[file] {
			t.Errorf("stricter explains %s, which no test needs any more: take it out", file)
		}
	}
	report(t, "suite through our door", doorTable(files, strict))
}

func (f *tally) door(t *testing.T, g group) *validate.Schema {
	doc, err := validate.Parse(g.Schema, validate.AnswerLimits())
	if err != nil {
		f.refused++
		f.rules["parser: "+err.(*validate.ParseError).Rule] = true
		return nil
	}
	s, err := validate.CompileSchema("suite", doc)
	if err == nil {
		f.asWritten++
		return s
	}
	s, err = validate.CompileSchema("suite", fit(doc))
	if err == nil {
		f.rewritten++
		return s
	}
	f.refused++
	for _, found := range err.(*validate.SchemaError).Findings {
		if found.Rule == "schema-compile" {
			t.Errorf("%s: %s: the guard takes it and an engine does not: %v", g.file, g.Description, err)
		}
		f.rules[found.Rule] = true
	}
	return nil
}

// through says whether we accept the data, and which rule refuses it.
func through(s *validate.Schema, data json.RawMessage) (bool, string) {
	v, err := validate.Parse(data, validate.AnswerLimits())
	if err != nil {
		return false, "parser: " + err.(*validate.ParseError).Rule
	}
	if no := s.Validate(v); no != nil {
		return false, no.Rule
	}
	return true, ""
}

func doorTable(files map[string]*tally, strict []string) string {
	var b strings.Builder
	b.WriteString("| file | schemas | taken as written | taken rewritten | refused by | tests run | as the suite says | stricter |\n|---|---|---|---|---|---|---|---|\n")
	var sum tally
	for _, name := range sortedKeys(files) {
		f := files[name]
		refused := "–"
		if f.refused > 0 {
			refused = fmt.Sprintf("%d: %s", f.refused, strings.Join(sortedKeys(f.rules), ", "))
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %s | %d | %d | %d |\n", name, f.groups, f.asWritten, f.rewritten, refused, f.tests, f.right, f.tooStrict)
		sum.groups += f.groups
		sum.asWritten += f.asWritten
		sum.rewritten += f.rewritten
		sum.refused += f.refused
		sum.tests += f.tests
		sum.right += f.right
		sum.tooStrict += f.tooStrict
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d | %d | %d | %d |\n\n", sum.groups, sum.asWritten, sum.rewritten, sum.refused, sum.tests, sum.right, sum.tooStrict)
	b.WriteString("Each test that the suite accepts and we refuse:\n\n| file | test | why |\n|---|---|---|\n")
	b.WriteString(strings.Join(strict, "\n"))
	return b.String()
}

// cell makes a text of the suite fit into a table.
func cell(s string) string {
	return strings.NewReplacer("|", "/", "`", "'", "<", "&lt;", "\n", " ").Replace(s)
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// alone holds what an engine without us does otherwise than one file says.
type alone struct {
	open, closed, notCompiled int
	rows                      []string
}

func (a *alone) add(count *int, g group, test, what string) {
	*count++
	a.rows = append(a.rows, fmt.Sprintf("| `%s` | %s: %s | %s |", g.file, cell(g.Description), cell(test), what))
}

// TestEnginesAlone runs the suite through each engine as its authors give it.
// A difference needs a row in handled, and a row needs a difference: when a
// library gets better this test fails, and the row is taken out.
func TestEnginesAlone(t *testing.T) {
	groups := suite(t)
	found := map[string]*alone{}
	passed := map[string]*[2]int{}
	for _, e := range rawEngines(t) {
		passed[e.name] = &[2]int{}
		for _, g := range groups {
			key := e.name + " " + g.file
			if found[key] == nil {
				found[key] = &alone{}
			}
			part := &passed[e.name][0]
			if g.optional() {
				part = &passed[e.name][1]
			}
			*part += e.run(g, found[key])
		}
	}
	maps.DeleteFunc(found, func(_ string, a *alone) bool { return len(a.rows) == 0 })
	for key, a := range found {
		if handled[key] == "" {
			t.Errorf("a difference without a handling: %s %d %d %d", key, a.open, a.closed, a.notCompiled)
		}
	}
	for key := range handled {
		if found[key] == nil {
			t.Errorf("handled has a row for %s, over which the engine and the suite agree now: the library got better, take the row out", key)
		}
	}
	report(t, "engines alone", aloneTable(found, passed))
}

// run returns how many tests of the group the engine passes.
func (e engine) run(g group, into *alone) int {
	passed := 0
	accepts, err := e.compile(g.Schema, g.formats())
	for _, one := range g.Tests {
		if err != nil {
			into.add(&into.notCompiled, g, one.Description, "does not compile")
			continue
		}
		switch got := safely(accepts, one.Data); {
		case got == one.Valid:
			passed++
		case got:
			into.add(&into.open, g, one.Description, "accepts")
		default:
			into.add(&into.closed, g, one.Description, "refuses")
		}
	}
	return passed
}

func safely(accepts func(json.RawMessage) bool, data json.RawMessage) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return accepts(data)
}

func aloneTable(found map[string]*alone, passed map[string]*[2]int) string {
	var b, each strings.Builder
	b.WriteString("| engine | required | optional |\n|---|---|---|\n")
	for _, name := range sortedKeys(passed) {
		fmt.Fprintf(&b, "| %s | %d of %d | %d of %d |\n", name, passed[name][0], suiteRequired, passed[name][1], suiteOptional)
	}
	b.WriteString("\n| engine | file | accepts what it must refuse | refuses what it must accept | tests of a schema that does not compile | handling |\n|---|---|---|---|---|---|\n")
	last := ""
	for _, key := range sortedKeys(found) {
		name, file, _ := strings.Cut(key, " ")
		a := found[key]
		fmt.Fprintf(&b, "| %s | `%s` | %d | %d | %d | %s |\n", name, file, a.open, a.closed, a.notCompiled, handled[key])
		if name != last {
			last = name
			fmt.Fprintf(&each, "\nEach test over which %s differs:\n\n| file | test | %s |\n|---|---|---|\n", name, name)
		}
		each.WriteString(strings.Join(a.rows, "\n") + "\n")
	}
	return b.String() + each.String()
}
