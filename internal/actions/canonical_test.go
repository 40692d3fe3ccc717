package actions

import (
	"path/filepath"
	"testing"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// A contract and a site file in their canonical form are read as the same
// values, and load as the same ones: no meaning hangs on the way YAML is
// written.
func TestCanonicalFormIsReadAgain(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shippedFolder, "*", contractFile))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		c, ps := LoadContract(filepath.Dir(file))
		if len(ps) > 0 {
			t.Fatal(ps)
		}
		text := canonicalForm(t, readFile(file, strictyaml.Limits{}))
		again, _, ps := ParseContract(file, c.Action(), text, nil)
		if len(ps) > 0 {
			t.Errorf("the canonical form does not load: %v", ps)
			continue
		}
		// Lookups run in the order written, which is there that of their names.
		if len(c.Lookups()) < 2 && again.Digest() != c.Digest() {
			t.Errorf("%s: the canonical form is another contract", file)
		}
	}
	site := loadSite(filepath.Join(shippedFolder, "targets.yaml"))
	again := parseSite(strictyaml.Parse("targets.yaml", canonicalForm(t, site.f), strictyaml.Limits{Bytes: maxSiteFile, Nodes: siteNodes}), site.dir)
	if len(again.f.Problems()) > 0 || again.digest != site.digest {
		t.Errorf("the canonical form is another site file: %v", again.f.Problems())
	}
}

// canonicalForm writes a file's value and holds it to what is read from that.
func canonicalForm(t *testing.T, f *strictyaml.File) []byte {
	t.Helper()
	v := f.Root().Value()
	text := validate.Canonical(v)
	again := strictyaml.Parse(f.Name(), text, strictyaml.Limits{Bytes: maxSiteFile, Nodes: siteNodes})
	if len(again.Problems()) > 0 || !validate.Equal(again.Root().Value(), v) {
		t.Fatalf("%s: the canonical form is read as something else: %v", f.Name(), again.Problems())
	}
	return text
}
