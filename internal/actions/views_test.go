package actions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const manyParts = "compare/testdata/contract.yaml"

func fileText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The lookups run in the order written, so their order is under the digest.
func TestDigestCoversTheOrderOfLookups(t *testing.T) {
	text := fileText(t, manyParts)
	before, rest, _ := strings.Cut(text, "  head:\n")
	head, rest, _ := strings.Cut(rest, "  space:\n")
	space, after, _ := strings.Cut(rest, "request:\n")
	other := before + "  space:\n" + space + "  head:\n" + head + "request:\n" + after
	a, _, problems := ParseContract("a", "write_page", []byte(text), nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	b, _, problems := ParseContract("b", "write_page", []byte(other), nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if slices.Equal(a.Lookups(), b.Lookups()) || a.Digest() == b.Digest() {
		t.Errorf("%v and %v have the same digest", a.Lookups(), b.Lookups())
	}
}

func TestParseContractKnowsItsFolder(t *testing.T) {
	text := []byte(fileText(t, manyParts))
	if _, root, problems := ParseContract("x", "", text, nil); len(problems) > 0 || root.Get("action").Text != "write_page" {
		t.Errorf("%v", problems)
	}
	_, _, problems := ParseContract("x", "other", text, nil)
	if len(problems) != 1 || problems[0].Line != 2 || !strings.Contains(problems[0].Message, `"other"`) {
		t.Errorf("%v", problems)
	}
}

const shippedFolder = "../../contracts"

// One contract loads without the others, and is the one that the whole set has.
func TestLoadOneIsTheSameContract(t *testing.T) {
	site := filepath.Join(shippedFolder, "targets.yaml")
	set, problems := LoadSet(site, shippedFolder)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	whole, _ := set.Contract("deploy_release")
	one, alone, problems := LoadOne(site, filepath.Join(shippedFolder, "deploy_release"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if one.Digest() != whole.Digest() || len(alone.Contracts()) != 1 || len(alone.Targets()) != len(set.Targets()) {
		t.Error("another contract, or another site file")
	}
	cases := one.RouteCases()
	if len(cases) != 4 || !slices.Equal(one.RouteBy(), []string{"service", "environment"}) || one.RouteList() != "" {
		t.Fatalf("%v %v", cases, one.RouteBy())
	}
	cases[0].With["app"] = "changed"
	if one.RouteCases()[0].With["app"] == "changed" {
		t.Error("the contract was changed from outside")
	}
	if _, _, problems := LoadOne(site, filepath.Join(shippedFolder, "nowhere")); len(problems) == 0 {
		t.Error("a contract that is not there")
	}
	if _, _, problems := LoadOne("nowhere.yaml", filepath.Join(shippedFolder, "deploy_release")); len(problems) == 0 {
		t.Error("a site file that is not there")
	}
}

func TestReadSiteTellsItsMistakes(t *testing.T) {
	site, problems := ReadSite(filepath.Join(shippedFolder, "targets.yaml"))
	if len(problems) > 0 || site.Root().Get("targets") == nil || len(site.FileDigests()) != 0 {
		t.Errorf("%v", problems)
	}
	path := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(path, []byte("targets: {}\nidentity: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, problems := ReadSite(path); len(problems) == 0 {
		t.Error("a site file with mistakes")
	}
}
