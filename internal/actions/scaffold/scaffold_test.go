package scaffold_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/scaffold"
	"chatelaine/internal/contracttest"
)

// good are answers of which a skeleton can be made.
var good = map[string]scaffold.Answers{
	"a read": {
		Action: "get_release", Effect: "read", Service: "releases", Method: "get", Path: "/v1/services/{service}/releases/{id}",
		Summary: "Tell the state of one release.", Owner: "release team",
		Inputs:  []string{"service:choice=api|worker", "id:word=40", "verbose?:yesno", "since?:time", "labels?:list=3:word=9"},
		Outputs: []string{"id:word=40", "state@/status/state:choice=queued|healthy|failed", "progress@/status/progress?:number=0..1", "size:whole=0..9", "at@/status/at:time", "log@/a~1b:text=900"},
	},
	"a change": {
		Action: "create_release", Effect: "change", Service: "releases", Method: "POST", Path: "/v1/releases",
		Inputs:  []string{"service:choice=api|worker", "version:word=20", "reason:text=500", "count:whole=1..5", "note?:text", "when?:day", "who?:uuid", "share:number=0.5..1"},
		Outputs: []string{"id:uuid", "version:word=20", "note?:word=20"},
	},
	"a destroy": {
		Action: "delete_note", Effect: "destroy", Service: "notes.v2", Method: "DELETE", Path: "/notes/{number}",
		Inputs: []string{"number:whole=1..999999"},
	},
	"nothing said": {Action: "touch_it", Effect: "change", Service: "s", Method: "PUT", Path: "/x"},
	"a ping":       {Action: "ping_it", Effect: "read", Service: "s", Method: "HEAD", Path: "/x"},
	"the same thing": {
		Action: "get_pair", Effect: "read", Service: "s", Method: "GET", Path: "/x/{a}/{b}",
		Inputs:  []string{"a:word=1", "b:choice=x|y", "c:whole=3..4", "d:yesno", "e:time", "f:day", "g:uuid", "h:number=0..0.5", "i:whole=-5..-4"},
		Outputs: []string{"a:word=1", "b:choice=x|y", "c:whole=3..4", "d:yesno", "e@/at/e:time", "f:day", "g:uuid", "h:number=0..0.5", "i:whole=-5..-4"},
	},
	"hard words": {
		Action: "set_mode", Effect: "change", Service: "no", Method: "PATCH", Path: "/modes/{mode}", Summary: "It's {odd}: \"#1\" – yes\u202e\nand no.", Owner: "null",
		Inputs:  []string{"mode:choice=yes|no|null|1|1.0", "null:text=10", "true:choice=#|: |it's"},
		Outputs: []string{"mode:choice=yes|no|null|1|1.0"},
	},
}

// Every skeleton loads, has nothing that the lint minds, and plays: its fixtures
// and the near-misses of its accepted answer.
func TestSkeletonsLoadAndPlay(t *testing.T) {
	for name, a := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, wrong := scaffold.FromAnswers(a)
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			root := t.TempDir()
			contracts, site := filepath.Join(root, "contracts"), filepath.Join(root, "targets.yaml")
			w, err := o.Write(contracts)
			if err != nil {
				t.Fatalf("%v\n%s", err, o.Files()["contract.yaml"])
			}
			if err := os.WriteFile(site, []byte(w.Site), 0o600); err != nil {
				t.Fatal(err)
			}
			set, problems := actions.LoadSet(site, contracts)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			text := o.Files()["contract.yaml"]
			c, _ := set.Contract(a.Action)
			for _, f := range actions.Lint(c, set) {
				t.Errorf("lint: %d: %s [%s]\n%s", f.Line, f.Message, f.Rule, text)
			}
			played(t, site, contracts, text)
		})
	}
}

func played(t *testing.T, site, contracts, text string) {
	t.Helper()
	rep, err := contracttest.Run(context.Background(), contracttest.Options{Site: site, Contracts: contracts, Mutate: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rep.Cases {
		if !c.OK {
			b, _ := os.ReadFile(c.Path)
			t.Errorf("%s: %+v\n%s\n%s", c.File, c, b, text)
		}
	}
	for _, v := range rep.Coverage {
		for _, p := range v.NeverRefused {
			t.Errorf("%s: no fixture is refused by %s\n%s", v.Action, p.Name, text)
		}
	}
	for _, m := range rep.Mutations {
		for _, h := range m.Holes {
			t.Errorf("a hole: %+v\n%s", h, text)
		}
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*scaffold.Answers)
		want   string
	}{
		{"name", func(a *scaffold.Answers) { a.Action = "Get" }, `"Get" is no name of an action`},
		{"effect", func(a *scaffold.Answers) { a.Effect = "look" }, `"look" is no effect`},
		{"method", func(a *scaffold.Answers) { a.Method = "FETCH" }, `"FETCH" is no method`},
		{"a read that posts", func(a *scaffold.Answers) { a.Method = "POST" }, "a read uses GET or HEAD"},
		{"a change that gets", func(a *scaffold.Answers) { a.Effect = "change" }, "needs a method that changes something"},
		{"a delete that changes", func(a *scaffold.Answers) { a.Effect, a.Method = "change", "DELETE" }, "a DELETE request destroys"},
		{"service", func(a *scaffold.Answers) { a.Service = "https://x" }, "is no name of a service"},
		{"an output of HEAD", func(a *scaffold.Answers) { a.Method = "HEAD" }, "an answer to HEAD has no body"},
		{"path", func(a *scaffold.Answers) { a.Path = "v1/x" }, "begins with /"},
		{"query in the path", func(a *scaffold.Answers) { a.Path = "/x?y=1" }, "has no query"},
		{"a hole in the path", func(a *scaffold.Answers) { a.Path = "/x/{other}" }, "there is no input of that name"},
		{"free text in the path", func(a *scaffold.Answers) { a.Inputs = []string{"id:text=20"} }, "stands in the path, so it is a word"},
		{"a forbidden name", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "callbackUrl:word") }, `contains the word "url"`},
		{"a member that is followed", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "sql:text") }, `no input may be sent as "sql"`},
		{"twice", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "id:word") }, `"id" stands twice`},
		{"no kind", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x") }, "says no kind"},
		{"no such kind", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:string") }, `there is no kind "string"`},
		{"a bound that is none", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:text=lots") }, "is no bound"},
		{"a bound too large", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:word=1000") }, "from 1 to 128"},
		{"no words", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:choice") }, "a choice names its words"},
		{"a word that nobody sees", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:choice=a\u2028b|c") }, "characters that nobody sees"},
		{"a word twice", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:choice=a|a") }, "stands twice"},
		{"a range backwards", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:whole=5..1") }, "is no range"},
		{"a range of text", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:whole=a..b") }, "is no range"},
		{"another spelling", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:whole=01..2") }, "is no range"},
		{"a bound where none is", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:yesno=1") }, "takes no bound"},
		{"a list of lists", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:list=2:list=2:word") }, "a list holds plain values"},
		{"a list of nothing", func(a *scaffold.Answers) { a.Inputs = append(a.Inputs, "x:list=2") }, "how many and of what"},
		{"an output's pointer", func(a *scaffold.Answers) { a.Outputs = []string{"x@a/b:word"} }, "is no pointer"},
		{"an output's name", func(a *scaffold.Answers) { a.Outputs = []string{"X:word"} }, "is no name of an output"},
		{"an output twice", func(a *scaffold.Answers) { a.Outputs = []string{"x:word", "x@/y:word"} }, `"x" stands twice`},
		{"a member that is a value and an object", func(a *scaffold.Answers) { a.Outputs = []string{"x:word", "y@/x/y:word"} }, "both a value and an object"},
	} {
		a := good["a read"]
		a.Inputs, a.Outputs = slices.Clone(a.Inputs), slices.Clone(a.Outputs)
		c.change(&a)
		o, wrong := scaffold.FromAnswers(a)
		if o != nil || !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, c.want) }) {
			t.Errorf("%s: %v, want %q", c.name, wrong, c.want)
		}
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, wrong := scaffold.FromAnswers(scaffold.Answers{Action: "X", Effect: "y", Service: "Z", Method: "W", Path: "v", Inputs: []string{"a", "b:c"}, Outputs: []string{"d"}})
	if len(wrong) < 7 {
		t.Errorf("%d mistakes: %v", len(wrong), wrong)
	}
}

func TestWriteReplacesNothing(t *testing.T) {
	o, wrong := scaffold.FromAnswers(good["a read"])
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for name, prepare := range map[string]func(string) error{
		"a folder":       func(p string) error { return os.MkdirAll(filepath.Join(p, "fixtures"), 0o755) },
		"an empty one":   func(p string) error { return os.Mkdir(p, 0o755) },
		"a file":         func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"a dangling one": func(p string) error { return os.Symlink("nowhere", p) },
	} {
		dir := t.TempDir()
		if err := prepare(filepath.Join(dir, "get_release")); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write(dir); !errors.Is(err, scaffold.ErrThere) {
			t.Errorf("%s: %v", name, err)
		}
		only(t, dir, "get_release")
	}
}

// A skeleton that cannot be written leaves nothing behind.
func TestWriteIsWholeOrNotAtAll(t *testing.T) {
	o, _ := scaffold.FromAnswers(good["a read"])
	o.Service = "not a target" // what the loader refuses
	dir := t.TempDir()
	_, err := o.Write(dir)
	var ps actions.Problems
	if !errors.As(err, &ps) {
		t.Errorf("%v", err)
	}
	only(t, dir)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(file); err == nil {
		t.Error("a file was taken for the folder of contracts")
	}
	only(t, dir, "file")
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", dir, got, want)
	}
}

// The contract names no place and no identity; those are printed for the
// operator.
func TestContractNamesNoPlace(t *testing.T) {
	a := good["a change"]
	a.URL = "https://releases.internal.example/api"
	o, _ := scaffold.FromAnswers(a)
	for name, text := range o.Files() {
		if strings.Contains(text, "releases.internal") && name != "contract.yaml" {
			t.Errorf("%s names the address", name)
		}
	}
	text := o.Files()["contract.yaml"]
	if regexp.MustCompile(`(?m)^[^#\n]*(https?:|bearer)`).MatchString(text) {
		t.Errorf("the contract names a place or an identity:\n%s", text)
	}
	if site := o.Site(); !strings.Contains(site, "url: https://releases.internal.example/api") || !strings.Contains(site, "kind: bearer") {
		t.Errorf("the suggested target:\n%s", site)
	}
}
