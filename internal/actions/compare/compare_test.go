package compare

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
)

const shipped = "../../../contracts"

// shippedTexts are the texts of all shipped contracts, by action.
func shippedTexts(t *testing.T) map[string]Text {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shipped, "*", "contract.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d contracts, %v", len(files), err)
	}
	out := map[string]Text{}
	for _, f := range files {
		out[filepath.Base(filepath.Dir(f))] = Text{File: f, Root: parse(t, f, readFile(t, f))}
	}
	return out
}

// The base of the table is a contract that the loader takes.
func TestBaseLoads(t *testing.T) {
	if _, _, problems := actions.ParseContract("contract.yaml", "write_page", []byte(readFile(t, "testdata/contract.yaml")), nil); len(problems) > 0 {
		t.Error(problems)
	}
}

// Nothing changes between a thing and itself.
func TestEqualIsEmpty(t *testing.T) {
	site, problems := actions.ReadSite(filepath.Join(shipped, "targets.yaml"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := Side{Name: "x", Contracts: shippedTexts(t), Site: &Site{Root: site.Root(), Digests: site.FileDigests()}}
	r := Sides(s, s)
	if !r.Empty() || r.Loosens != 0 || !r.Enough || !r.SiteCompared {
		t.Errorf("%+v", r)
	}
	for _, k := range r.Contracts {
		if k.State != Same || len(k.Changes) != 0 || k.Needs != NoBump || k.Made != NoBump {
			t.Errorf("%s: %+v", k.Action, k)
		}
	}
}

// mutations are the ways in which one node is changed in place; each gives what
// takes the change back, nil where it does not fit.
var mutations = map[string]func(n *strictyaml.Node) func(){
	"other scalar": func(n *strictyaml.Node) func() {
		old := *n
		switch n.Kind {
		case strictyaml.String:
			n.Text += "x"
		case strictyaml.Number:
			n.Text = "9" + n.Text
		case strictyaml.Bool:
			n.Truth = !n.Truth
		default:
			return nil
		}
		return func() { *n = old }
	},
	"first member gone": withoutMember(func(int) int { return 0 }),
	"last member gone":  withoutMember(func(n int) int { return n - 1 }),
	"a member gone":     withoutMember(func(n int) int { return n / 2 }),
	"member more": func(n *strictyaml.Node) func() {
		old := *n
		if n.Kind != strictyaml.Mapping {
			return nil
		}
		n.Members = append(slices.Clone(n.Members), strictyaml.Member{Key: "zzz", Value: &strictyaml.Node{Kind: strictyaml.String, Text: "zzz"}})
		return func() { *n = old }
	},
	"element gone": func(n *strictyaml.Node) func() {
		old := *n
		if len(n.Items) == 0 {
			return nil
		}
		n.Items = n.Items[1:]
		return func() { *n = old }
	},
	"another kind": func(n *strictyaml.Node) func() {
		old := *n
		*n = strictyaml.Node{Kind: strictyaml.Sequence, Items: []*strictyaml.Node{{Kind: strictyaml.String, Text: "zzz"}}}
		return func() { *n = old }
	},
}

// withoutMember takes one member of a mapping away.
func withoutMember(which func(n int) int) func(n *strictyaml.Node) func() {
	return func(n *strictyaml.Node) func() {
		old := *n
		if len(n.Members) == 0 {
			return nil
		}
		i := which(len(n.Members))
		n.Members = slices.Delete(slices.Clone(n.Members), i, i+1)
		return func() { *n = old }
	}
}

func walk(n *strictyaml.Node, at string, f func(at string, n *strictyaml.Node)) {
	f(at, n)
	for _, m := range n.Members {
		walk(m.Value, at+"/"+m.Key, f)
	}
	for i, it := range n.Items {
		walk(it, at+"/"+itoa(i), f)
	}
}

// onlySpelling are the changes below that mean the same: a definition that
// nothing refers to, and what is taken away and holds without being written.
var onlySpelling = []string{
	"base /input/$defs: member more",
	"base /lookups/space/outcomes/0/expect: a member gone", // additionalProperties: true
	"deploy_release /approval: last member gone",           // ask: session
}

// No difference goes unsaid, and none that means something is called spelling:
// every place of a contract is changed in every way.
func TestNoChangeGoesUnsaid(t *testing.T) {
	texts := map[string]string{"base": readFile(t, "testdata/contract.yaml")}
	texts["deploy_release"] = readFile(t, filepath.Join(shipped, "deploy_release", "contract.yaml"))
	seen := 0
	for name, text := range texts {
		old, changed := parse(t, name, text), parse(t, name, text)
		walk(changed, "", func(at string, n *strictyaml.Node) {
			if at == "" || at == "/version" {
				return
			}
			for how, mutate := range mutations {
				undo := mutate(n)
				if undo == nil {
					continue
				}
				seen++
				changes := Pair(name, Text{Root: old}, Text{Root: changed}).Changes
				if back := Pair(name, Text{Root: changed}, Text{Root: old}).Changes; len(back) == 0 {
					t.Errorf("%s %s: %s is not told on the way back", name, at, how)
				}
				if len(changes) == 0 {
					t.Errorf("%s %s: %s is not told", name, at, how)
				}
				if slices.Equal(kindsOf(changes), []string{"spelling"}) && !slices.Contains(onlySpelling, name+" "+at+": "+how) {
					t.Errorf("%s %s: %s is told as spelling", name, at, how)
				}
				undo()
			}
		})
	}
	if seen < 1500 {
		t.Errorf("only %d changes were made", seen)
	}
}

// Two edits at once are told as the two; the way back is the opposite of both.
func TestPairsOfEdits(t *testing.T) {
	base := readFile(t, "testdata/contract.yaml")
	old := Text{Root: parse(t, "old", base)}
	rnd := rand.New(rand.NewPCG(1, 2))
	done := 0
	for range 250 {
		x, y := edits[rnd.IntN(len(edits))], edits[rnd.IntN(len(edits))]
		if x.from == "" || y.from == "" || strings.Count(base, x.from) != 1 {
			continue
		}
		text := strings.Replace(base, x.from, x.to, 1)
		if strings.Count(text, y.from) != 1 {
			continue
		}
		f := strictyaml.Parse("new", []byte(strings.Replace(text, y.from, y.to, 1)), strictyaml.Limits{})
		if len(f.Problems()) > 0 {
			continue
		}
		done++
		new := Text{Root: f.Root()}
		there, back := Pair("x", old, new), Pair("x", new, old)
		for _, k := range kindsOf(there.Changes) {
			if !slices.Contains(kindsOf(back.Changes), rules[k].Back) {
				t.Errorf("%s and %s: %s has no %s on the way back: %v", x.name, y.name, k, rules[k].Back, kindsOf(back.Changes))
			}
		}
		if x.loosens && y.loosens && there.Changes != nil && loosening(there.Changes) == 0 {
			t.Errorf("%s and %s: nothing loosens", x.name, y.name)
		}
	}
	if done < 120 {
		t.Errorf("only %d pairs", done)
	}
}

func TestRulesAreWhole(t *testing.T) {
	for kind, r := range rules {
		back, ok := rules[r.Back]
		if !ok || back.Back != kind {
			t.Errorf("%s: its back is %q, whose back is %q", kind, r.Back, back.Back)
		}
		if r.Agent == Nothing && r.Operator == Nothing && r.Upstream == Nothing {
			t.Errorf("%s concerns nobody", kind)
		}
		if strings.Contains(kind, "wider") || strings.Contains(kind, "opened") || strings.Contains(kind, "looser") || strings.Contains(kind, "loosened") {
			if !r.Loosens {
				t.Errorf("%s does not loosen", kind)
			}
		}
	}
	if r := newChange("no-such-kind", "/", "", "", ""); !r.Loosens || r.Agent != Breaking {
		t.Error("a kind without a rule is not closed")
	}
}

// docs/contract-review.md has one line for each kind, with these weights.
func TestPageHasEveryKind(t *testing.T) {
	page := readFile(t, "../../../docs/contract-review.md")
	for kind, r := range rules {
		mark := ""
		if r.Loosens {
			mark = "loosens"
		}
		row := "| `" + kind + "`"
		for _, cell := range []string{r.Agent.String(), r.Operator.String(), r.Upstream.String(), mark} {
			if cell == "" {
				cell = "–"
			}
			row += " | " + cell
		}
		if !strings.Contains(page, "\n"+row+" |") {
			t.Errorf("the page has no row\n%s |", row)
		}
	}
}

// A contract that does not load any more is not passed over.
func TestOldRefused(t *testing.T) {
	new := Text{Root: parse(t, "new", readFile(t, "testdata/contract.yaml"))}
	for _, old := range []Text{{Refused: true}, {Refused: true, Root: parse(t, "old", "version: 1.2.3")}, {Refused: true, Root: parse(t, "old", "version: [x]")}} {
		k := Pair("write_page", old, new)
		if k.Enough || k.Needs != Major || loosening(k.Changes) != 1 {
			t.Errorf("%+v", k)
		}
	}
}

func TestAddedAndRemoved(t *testing.T) {
	x := Text{File: "x", Root: parse(t, "x", readFile(t, "testdata/contract.yaml"))}
	r := Sides(Side{Contracts: map[string]Text{"gone_one": x}}, Side{Contracts: map[string]Text{"new_one": x}})
	if len(r.Contracts) != 2 || r.Contracts[0].State != Removed || r.Contracts[1].State != Added || !r.Enough || r.Loosens != 1 {
		t.Errorf("%+v", r)
	}
}
