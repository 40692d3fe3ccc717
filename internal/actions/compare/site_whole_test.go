package compare

import (
	"slices"
	"testing"

	"chatelaine/internal/actions/strictyaml"
)

// siteSpelling are the changes below that mean the same as far as anybody can tell:
// the loader takes none of the files that they make. A target needs its actions, also
// where they are an empty list.
var siteSpelling = []string{
	"/targets/plain: last member gone", "/targets/old-host: a member gone", "/targets/events: last member gone",
	"/targets/forms: last member gone", "/targets/mesh: last member gone", "/targets/people: last member gone",
	"/targets/code: a member gone", "/targets/robots: last member gone", "/targets/images: last member gone",
	"/targets/deploy-test/http2: another kind", "/lists: member more",
}

// No difference of a site file goes unsaid, and none that means something is called
// spelling: every place of one with every kind of identity is changed in every way.
func TestNoChangeOfASiteGoesUnsaid(t *testing.T) {
	text := readFile(t, "../testdata/schema/targets-all.yaml")
	old, changed := parse(t, "old", text), parse(t, "new", text)
	seen := 0
	walk(changed, "", func(at string, n *strictyaml.Node) {
		if at == "" {
			return
		}
		for how, mutate := range mutations {
			undo := mutate(n)
			if undo == nil {
				continue
			}
			seen++
			there, back := sites(Site{Root: old}, Site{Root: changed}), sites(Site{Root: changed}, Site{Root: old})
			if len(there) == 0 || len(back) == 0 {
				t.Errorf("%s: %s is not told", at, how)
			}
			if slices.Equal(kindsOf(there), []string{"spelling"}) && !slices.Contains(siteSpelling, at+": "+how) {
				t.Errorf("%s: %s is told as spelling", at, how)
			}
			undo()
		}
	})
	if seen < 500 {
		t.Errorf("only %d changes were made", seen)
	}
}
