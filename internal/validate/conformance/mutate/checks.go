package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one check that can be switched off.
type mutant struct {
	switchNumber int
	name         string // file, function and the text of the check
	guard        string // the test that notices
}

// edit puts text into a file at an offset.
type edit struct {
	at, order int
	text      string
}

// finder collects the checks of one file.
type finder struct {
	all   *[]mutant
	names map[string]int
	file  string
	src   []byte
	set   *token.FileSet
	where string // the function
	edits []edit
	ints  map[string]bool // package constants that are whole numbers
}

// rewrite gives every check of the copy its switch.
func (c *scratch) rewrite() ([]mutant, error) {
	folder := filepath.Join(c.dir, target)
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed := map[string]*ast.File{}
	sources := map[string][]byte{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		if sources[f], err = os.ReadFile(f); err != nil {
			return nil, err
		}
		if parsed[f], err = parser.ParseFile(set, f, sources[f], parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	var all []mutant
	names := map[string]int{}
	ints := intConstants(parsed)
	for _, f := range files {
		if parsed[f] == nil {
			continue
		}
		w := &finder{all: &all, names: names, file: filepath.Base(f), src: sources[f], set: set, ints: ints}
		w.decls(parsed[f])
		if err := os.WriteFile(f, w.apply(), 0o644); err != nil {
			return nil, err
		}
	}
	return all, os.WriteFile(filepath.Join(folder, "check_switch.go"), []byte(switchFile(&all)), 0o644)
}

// intConstants names the package constants that limits are made of.
func intConstants(files map[string]*ast.File) map[string]bool {
	out := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				if v.Type != nil || len(v.Values) != len(v.Names) {
					continue
				}
				for i, n := range v.Names {
					if isInt(v.Values[i]) {
						out[n.Name] = true
					}
				}
			}
		}
	}
	return out
}

func isInt(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT
	case *ast.BinaryExpr:
		return isInt(e.X) && isInt(e.Y)
	}
	return false
}

func (w *finder) decls(f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			w.where = fn.Name.Name
			ast.Inspect(fn.Body, w.visit)
		}
	}
}

func (w *finder) text(n ast.Node) string {
	s := string(w.src[w.offset(n.Pos()):w.offset(n.End())])
	return strings.Join(strings.Fields(s), " ")
}

func (w *finder) offset(p token.Pos) int { return w.set.Position(p).Offset }

const nameLength = 90 // a name must fit a line of the table

// next makes a switch for the node.
func (w *finder) next(what string, n ast.Node) int {
	text := w.text(n)
	if len(text) > nameLength {
		text = text[:nameLength] + "…"
	}
	name := fmt.Sprintf("%s %s: %s%s", strings.TrimSuffix(w.file, ".go"), w.where, what, strings.ReplaceAll(text, "`", "'"))
	w.names[name]++
	if n := w.names[name]; n > 1 {
		name += fmt.Sprintf(" (%d)", n)
	}
	m := mutant{switchNumber: len(*w.all) + 1, name: name}
	*w.all = append(*w.all, m)
	return m.switchNumber
}

// around puts text before and after a node. Edits of outer nodes come first at
// the same place before it, and last after it.
func (w *finder) around(n ast.Node, before, after string) {
	size := int(n.End() - n.Pos())
	w.edits = append(w.edits, edit{w.offset(n.Pos()), -size, before}, edit{w.offset(n.End()), size - 1<<30, after})
}

func (w *finder) apply() []byte {
	slices.SortStableFunc(w.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	var out []byte
	last := 0
	for _, e := range w.edits {
		out = append(append(out, w.src[last:e.at]...), e.text...)
		last = e.at
	}
	return append(out, w.src[last:]...)
}

func (w *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		if refuses(n.Body) {
			w.disjuncts(n.Cond)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			w.cases(n.Body)
		}
	case *ast.ReturnStmt:
		for _, r := range n.Results {
			w.conjuncts(r)
		}
	case *ast.ExprStmt:
		if isReport(n) || w.where == "compileFirst" || w.where == "compileSecond" {
			w.around(n, fmt.Sprintf("if !checkOff(%d) { ", w.next("", n)), " }")
		}
	case *ast.RangeStmt:
		if w.where == "compileFirst" || w.where == "compileSecond" {
			w.around(n, fmt.Sprintf("if !checkOff(%d) { ", w.next("", n.X)), " }")
		}
	case *ast.KeyValueExpr:
		if strings.HasSuffix(w.where, "Limits") {
			w.around(n.Value, fmt.Sprintf("checkLimit(%d, ", w.next("ten times ", n)), ")")
		}
	case *ast.BinaryExpr:
		w.limits(n)
	case *ast.AssignStmt:
		w.engine(n)
	}
	return true
}

// disjuncts switches each part of a || b || c off by itself.
func (w *finder) disjuncts(e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.LOR {
		w.disjuncts(b.X)
		w.disjuncts(b.Y)
		return
	}
	w.around(e, fmt.Sprintf("(!checkOff(%d) && (", w.next("", e)), "))")
}

// conjuncts switches each part of a returned a && b && c off by itself.
func (w *finder) conjuncts(e ast.Expr) {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.LAND {
		return
	}
	for _, side := range []ast.Expr{b.X, b.Y} {
		if inner, ok := side.(*ast.BinaryExpr); ok && inner.Op == token.LAND {
			w.conjuncts(inner)
			continue
		}
		w.around(side, fmt.Sprintf("(checkOff(%d) || (", w.next("", side)), "))")
	}
}

func (w *finder) cases(body *ast.BlockStmt) {
	for _, s := range body.List {
		c := s.(*ast.CaseClause)
		if !refuses(&ast.BlockStmt{List: c.Body}) {
			continue
		}
		for _, e := range c.List {
			w.disjuncts(e)
		}
	}
}

// limits makes a constant ten times as large where something is compared to it.
func (w *finder) limits(b *ast.BinaryExpr) {
	switch b.Op {
	case token.LSS, token.GTR, token.LEQ, token.GEQ:
		for _, side := range []ast.Expr{b.X, b.Y} {
			id, ok := side.(*ast.Ident)
			if !ok || !w.ints[id.Name] {
				continue
			}
			n := w.next("ten times "+id.Name+" in ", b)
			x, y := w.text(b.X), w.text(b.Y)
			if side == b.X {
				x = "10*" + x
			} else {
				y = "10*" + y
			}
			w.around(b, fmt.Sprintf("((!checkOff(%d) && (", n), fmt.Sprintf(")) || (checkOff(%d) && (%s %s %s)))", n, x, b.Op, y))
		}
	}
}

// engine lets one of the two engines accept everything.
func (w *finder) engine(a *ast.AssignStmt) {
	if len(a.Rhs) != 1 {
		return
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	if !ok {
		return
	}
	switch name := calledName(call); {
	case name == "runFirst" && len(a.Lhs) == 2:
		w.around(a, "", fmt.Sprintf("; if checkOff(%d) { %s, %s = nil, true }", w.next("", a), w.text(a.Lhs[0]), w.text(a.Lhs[1])))
	case name == "runSecond" && len(a.Lhs) == 1:
		w.around(a, "", fmt.Sprintf("; if checkOff(%d) { %s = true }", w.next("", a), w.text(a.Lhs[0])))
	}
}
