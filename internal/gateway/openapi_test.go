package gateway

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/actions"
)

// Every reference of the document points at something in the document: readers
// of OpenAPI know no other base.
func TestOpenAPIReferencesResolve(t *testing.T) {
	root := filepath.Join("..", "..", "contracts")
	set, problems := actions.LoadSet(filepath.Join(root, "targets.yaml"), root)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	b, err := json.Marshal(openAPIOf(set.Contracts()))
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	refs := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				refs++
				if !resolves(doc, ref) {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, sub := range v {
				walk(sub)
			}
		case []any:
			for _, sub := range v {
				walk(sub)
			}
		}
	}
	walk(doc)
	// input, envelope twice, and data inside the envelope.
	if want := 4 * len(set.Contracts()); refs < want {
		t.Fatalf("%d references, want at least %d", refs, want)
	}
}

func resolves(doc any, ref string) bool {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return false
	}
	for _, part := range strings.Split(pointer, "/") {
		m, ok := doc.(map[string]any)
		if !ok {
			return false
		}
		if doc, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return false
		}
	}
	return true
}
