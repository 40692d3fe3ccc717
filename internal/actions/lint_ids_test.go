package actions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"chatelaine/internal/actions"
)

// reporters are the functions that report a mistake, with the place of the
// rule's id among their arguments.
var reporters = map[string]int{"bad": 1, "Report": 1, "report": 1, "ReportFile": 0, "tell": 2, "say": 0, "add": 0}

// ruleForm is what a rule's id looks like.
var ruleForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Every id that code reports is a rule of the table, and every rule of the
// table is reported.
func TestEveryIDIsARule(t *testing.T) {
	used := map[string][]string{}
	for dir, files := range map[string][]string{
		".": nil, "strictyaml": nil,
		"../validate":     {"lint.go", "guard.go", "prove_schema.go", "prove_object.go"},
		"../contracttest": {"decode.go", "fixture.go", "signed.go"},
	} {
		for id, at := range idsIn(t, dir, files) {
			used[id] = append(used[id], at...)
		}
	}
	if len(used) < 100 {
		t.Errorf("only %d ids were found; this test reads the code wrongly", len(used))
	}
	for id, at := range used {
		if _, ok := actions.RuleByID(id); !ok {
			t.Errorf("%s reports %q, which is no rule of the table in lint_rules_*.go", at[0], id)
		}
	}
	for _, r := range actions.Rules() {
		if used[r.ID] == nil {
			t.Errorf("nothing reports the rule %s", r.ID)
		}
	}
}

// idsIn reads the ids from the code of a folder: what is given to a reporter,
// and what a Problem or a finding is made with. files are the only ones read
// where they are named.
func idsIn(t *testing.T, dir string, files []string) map[string][]string {
	t.Helper()
	set := token.NewFileSet()
	var parsed []*ast.File
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatal(dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || files != nil && !slices.Contains(files, filepath.Base(path)) {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	out := map[string][]string{}
	consts := constantsOf(parsed)
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			if x := idOf(n); x != nil {
				if text := textOf(x, consts); ruleForm.MatchString(text) {
					out[text] = append(out[text], set.Position(x.Pos()).String())
				}
			}
			return true
		})
	}
	return out
}

// idOf returns the expression of a rule's id, nil where a node has none.
func idOf(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
			if i, known := reporters[sel.Sel.Name]; known && i < len(n.Args) {
				return n.Args[i]
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Rule" {
			return n.Value
		}
	}
	return nil
}

// textOf is the text of a literal or a constant, "" of anything else.
func textOf(x ast.Expr, consts map[string]string) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, _ := strconv.Unquote(x.Value)
			return text
		}
	case *ast.Ident:
		return consts[x.Name]
	}
	return ""
}

// constantsOf are the constants of a package that hold text.
func constantsOf(files []*ast.File) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, s := range gen.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
							out[name.Name], _ = strconv.Unquote(lit.Value)
						}
					}
				}
			}
		}
	}
	return out
}
