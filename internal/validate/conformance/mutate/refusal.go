package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// What a refusal looks like in the target: a report, or a return of an error, a
// rejection, the name of a rule or a plain false.
var (
	reports  = []string{"add", "bad"}
	refusers = []string{"fail", "reject", "refuse", "violation", "missed", "failed", "fails", "form", "New", "Errorf", "skipped"}
	troubles = []string{"err", "no", "pf", "pe", "fault", "unknown", "unbounded", "false"}
)

// refuses says whether a branch refuses; blocks inside it count.
func refuses(body *ast.BlockStmt) bool {
	found := false
	for _, s := range body.List {
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.ReturnStmt:
				found = found || slices.ContainsFunc(n.Results, isTrouble)
			case *ast.ExprStmt:
				found = found || isReport(n)
			case *ast.AssignStmt:
				found = found || slices.ContainsFunc(n.Lhs, isBad) || slices.ContainsFunc(n.Rhs, isFalse)
			}
			return !found
		})
	}
	return found
}

func isReport(s *ast.ExprStmt) bool {
	call, ok := s.X.(*ast.CallExpr)
	return ok && slices.Contains(reports, calledName(call))
}

func isBad(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "bad"
}

func isFalse(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "false"
}

func isTrouble(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains(troubles, e.Name) || strings.HasPrefix(e.Name, "rule") || strings.HasPrefix(e.Name, "err")
	case *ast.CallExpr:
		name := calledName(e)
		return slices.Contains(refusers, name) || strings.HasPrefix(name, "err")
	case *ast.UnaryExpr:
		lit, ok := e.X.(*ast.CompositeLit)
		return ok && e.Op == token.AND && slices.ContainsFunc([]string{"Error", "Rejection", "Violation", "Fault", "fault"}, func(s string) bool { return strings.HasSuffix(typeName(lit.Type), s) })
	case *ast.CompositeLit:
		array, ok := e.Type.(*ast.ArrayType)
		return ok && slices.Contains([]string{"string", "Violation", "SchemaFinding"}, typeName(array.Elt)) && len(e.Elts) > 0
	case *ast.BasicLit:
		return e.Kind == token.STRING && e.Value != `""`
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isTrouble(e.X) || isTrouble(e.Y))
	}
	return false
}

func typeName(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
