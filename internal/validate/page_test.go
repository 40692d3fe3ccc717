package validate

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ruleCalls are the functions whose argument of this number is a rule's id.
var ruleCalls = map[string]int{"refuse": 0, "onText": 0, "reject": 1, "failed": 0, "noSecret": 2}

// rulesIn collects the ids that the code of a folder uses: constants named
// rule… or Rule…, the argument of a refusal, the field Rule of a literal.
func rulesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := goparser.ParseFile(token.NewFileSet(), file, nil, goparser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		add := func(e ast.Expr) {
			if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				id, _ := strconv.Unquote(lit.Value)
				out[id] = file
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if (strings.HasPrefix(name.Name, "rule") || strings.HasPrefix(name.Name, "Rule")) && i < len(n.Values) {
						add(n.Values[i])
					}
				}
			case *ast.CallExpr:
				name := ""
				switch f := n.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				if i, ok := ruleCalls[name]; ok && i < len(n.Args) {
					add(n.Args[i])
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Rule" || key.Name == "rule") {
					add(n.Value)
				}
			case *ast.CompositeLit:
				if name, ok := n.Type.(*ast.Ident); ok && name.Name == "conversion" && len(n.Elts) > 0 {
					add(n.Elts[0])
				}
			}
			return true
		})
	}
	return out
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Every rule that can refuse an answer, a key file or a schema has a row on
// docs/boundary.md, every row is a rule, and every keyword that can be broken
// and every layer is named.
func TestBoundaryPageHasEveryRule(t *testing.T) {
	b, err := os.ReadFile("../../docs/boundary.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	rows := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			rows[m[1]] = true
			if strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
				t.Errorf("the row of %s says too little", m[1])
			}
		}
	}
	rules := map[string]string{}
	for _, dir := range []string{".", "../executor", "../gateway"} {
		for id, file := range rulesIn(t, dir) {
			rules[id] = file
		}
	}
	for _, c := range []string{"same", "fresh", "after_call", "increased"} {
		rules[c] = "checks.go" // the rule of a check is its kind
	}
	for id, file := range rules {
		if !rows[id] && id != "stage-skipped" && keywords[id] == 0 {
			t.Errorf("docs/boundary.md has no row for the rule %s of %s", id, file)
		}
	}
	for id := range rows {
		if rules[id] == "" {
			t.Errorf("docs/boundary.md has a row for %s, which no code uses", id)
		}
	}
	if len(rules) < 90 || !strings.Contains(page, "`stage-skipped`") {
		t.Errorf("only %d rules were found in the code; this test reads it wrongly", len(rules))
	}
	_, part, _ := strings.Cut(page, "## schema and result")
	part, _, _ = strings.Cut(part, "\n## ")
	silent := []string{"$schema", "$defs", "$comment", "title", "description", "examples", "deprecated"} // say nothing about a value
	for name := range keywords {
		if !slices.Contains(silent, name) && !strings.Contains(part, "`"+name+"`") {
			t.Errorf("docs/boundary.md does not name the keyword %s", name)
		}
	}
	for _, layer := range []string{LayerTransport, LayerParse, LayerOutcome, LayerSchema, LayerPick, LayerCheck, LayerResult, LayerEcho} {
		if !strings.Contains(page, "`"+layer+"`") || !regexp.MustCompile(`(?m)^## .*\b`+layer+`\b`).MatchString(page) {
			t.Errorf("docs/boundary.md has no part about the layer %s", layer)
		}
	}
	for name := range formats {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/boundary.md does not name the format %s", name)
		}
	}
}
