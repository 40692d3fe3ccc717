package actions

import (
	"path/filepath"
	"slices"
)

// Review is everything that the loader and the lint say about a folder of
// contracts. It is for people and CI, not for a daemon: a set that is not whole
// is never loaded.
type Review struct {
	Actions   []string    // the contract folders, also those that do not load
	Contracts []*Contract // those that load
	Problems  Problems    // of the site file and of the contracts that do not load
	Findings  []Finding   // about those that load, with what they set aside
}

// ReviewFolder reads the site file and every contract folder. A contract that
// does not load hides no finding about another one; a site file that does not
// load is left out of the lint.
func ReviewFolder(sitePath, contractsDir string) Review {
	site := loadSite(sitePath)
	// A site file that lies elsewhere knows other contracts than these.
	own := filepath.Dir(filepath.Clean(sitePath))
	site.elsewhere = own != filepath.Clean(contractsDir) && own != filepath.Dir(filepath.Clean(contractsDir))
	set, problems := loadParts(site, contractsDir)
	r := Review{Problems: problems}
	dirs, _ := contractDirs(contractsDir) // an error is among the problems
	for _, dir := range dirs {
		r.Actions = append(r.Actions, filepath.Base(dir))
	}
	against := set
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.File == sitePath }) {
		against = nil
	}
	r.Contracts = set.Contracts()
	for _, c := range r.Contracts {
		r.Findings = append(r.Findings, LintAll(c, against)...)
	}
	return r
}
