package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"
)

// clearName is the name of a field that holds a secret, if it is text or bytes.
var clearName = regexp.MustCompile(`(?i)^(secret|token|passphrase|password|recoverycode|privatekey)s?$|(Secret|Token|Passphrase|Password)$`)

// notSecret are fields of such a name that hold none, with what they are.
var notSecret = map[string]string{}

// hides are the methods by which a struct keeps out of every print and log.
var hides = []string{"Format", "LogValue"}

// TestStructsWithASecretPrintNothing: most secrets are of a type that cannot print.
// Those that must be text for a moment, on their way to or from the wire, lie in
// structs that print nothing of themselves: not by a verb, not in a log.
func TestStructsWithASecretPrintNothing(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if room(p.ImportPath) == "testkit" || room(p.ImportPath) == "demo" {
			continue
		}
		found, methods := clearStructs(t, p)
		for name, field := range found {
			full := p.ImportPath[len(module)+1:] + "." + name
			seen[full+"."+field] = true
			if notSecret[full+"."+field] != "" {
				continue
			}
			for _, m := range hides {
				if !methods[name+"."+m] {
					t.Errorf("%s has the field %s in the clear, and no method %s: a log of it would show the secret", full, field, m)
				}
			}
		}
	}
	for name := range notSecret {
		if !seen[name] {
			t.Errorf("%s is excused and not there", name)
		}
	}
}

// clearStructs returns a package's named structs with a secret in the clear, by
// name with the first such field, and all its methods as TYPE.METHOD.
func clearStructs(t *testing.T, p goPackage) (found map[string]string, methods map[string]bool) {
	t.Helper()
	found, methods = map[string]string{}, map[string]bool{}
	fset := token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && len(d.Recv.List) == 1 {
					methods[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok {
						if st, ok := ts.Type.(*ast.StructType); ok {
							if field := clearField(st); field != "" {
								found[ts.Name.Name] = field
							}
						}
					}
				}
			}
		}
	}
	return found, methods
}

func receiver(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func clearField(st *ast.StructType) string {
	for _, f := range st.Fields.List {
		if !isText(f.Type) {
			continue
		}
		for _, n := range f.Names {
			if clearName.MatchString(n.Name) {
				return n.Name
			}
		}
	}
	return ""
}

// isText says whether a type is string or []byte.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "string"
	case *ast.ArrayType:
		id, ok := e.Elt.(*ast.Ident)
		return ok && id.Name == "byte"
	}
	return false
}
