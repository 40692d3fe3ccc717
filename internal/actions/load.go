package actions

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"chatelaine/internal/actions/strictyaml"
)

// contractFile is the name of a contract in its folder.
const contractFile = "contract.yaml"

// maxContracts bounds one set.
const maxContracts = 1000

// LoadSet reads the site file and every contract folder under contractsDir. It
// gives a whole set, or all mistakes of all files.
func LoadSet(sitePath string, contractsDir string) (*Set, Problems) {
	return orNothing(loadParts(loadSite(sitePath), contractsDir))
}

// LoadDrafts is LoadSet for contracts that are being written, perhaps a few of many:
// what proves an identity may then be an action that is not among them.
func LoadDrafts(sitePath string, contractsDir string) (*Set, Problems) {
	s := loadSite(sitePath)
	s.elsewhere = true
	return orNothing(loadParts(s, contractsDir))
}

func orNothing(set *Set, problems Problems) (*Set, Problems) {
	if len(problems) > 0 {
		return nil, problems
	}
	return set, nil
}

// loadParts gives what loads beside the mistakes of what does not. Only a set
// without a mistake has a digest and may be used.
func loadParts(s *site, contractsDir string) (*Set, Problems) {
	set := &Set{contracts: map[string]*Contract{}, targets: s.targets, identities: s.identities, lists: s.lists, keys: s.keys}
	dirs, err := contractDirs(contractsDir)
	if err != nil {
		problems := append(slices.Clone(s.f.Problems()), Problem{File: contractsDir, Rule: "file", Message: "cannot be read: " + pathless(err).Error(), Hint: "name the folder that holds the contract folders"})
		return set, problems.Sort()
	}
	var problems Problems
	for _, l := range readAll(dirs, s) {
		if len(l.problems) > 0 {
			problems = append(problems, l.problems...)
			continue
		}
		set.contracts[l.contract.action] = l.contract
	}
	s.proofs(set.contracts, dirs)
	problems = append(problems, s.f.Problems()...)
	if len(problems) == 0 {
		set.seal(s)
	}
	return set, problems.Sort()
}

// loaded is what became of one folder. The file's text and nodes, several times
// as large, are let go.
type loaded struct {
	contract *Contract
	problems Problems
}

// readAll reads the contracts, as many at once as there are processors; none of
// them changes the site that all of them are held against.
func readAll(dirs []string, s *site) []loaded {
	out := make([]loaded, len(dirs))
	var readers sync.WaitGroup
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, dir := range dirs {
		places <- struct{}{}
		readers.Go(func() {
			d := readContract(dir)
			d.bind(s)
			out[i] = loaded{d.c, d.f.Problems()}
			<-places
		})
	}
	readers.Wait()
	return out
}

// contractDirs lists the contract folders: every folder but hidden ones. Other
// files may lie beside them (the shipped site file does).
func contractDirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if info.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	if len(out) > maxContracts {
		return nil, errTooMany
	}
	return out, nil
}

// LoadContract reads one contract folder without a site file: what depends on
// targets and lists is not checked, and an input that a list will fill stays
// plain text.
func LoadContract(dir string) (*Contract, Problems) {
	d := readContract(dir)
	d.bind(nil)
	if ps := d.f.Problems(); len(ps) > 0 {
		return nil, ps
	}
	return d.c, nil
}

func readContract(dir string) *draft {
	f := readFile(filepath.Join(dir, contractFile), strictyaml.Limits{})
	d := &draft{f: f, c: &Contract{dir: dir}, codeUses: map[string]bool{}}
	d.decode()
	if name := filepath.Base(filepath.Clean(dir)); d.c.action != "" && d.c.action != name {
		d.bad(d.root.Get("action").Pos, "action", "", "the action is called %q, its folder %q", d.c.action, name)
	}
	return d
}

// parseContract reads a contract's bytes, for tests and fuzzing.
func parseContract(name string, b []byte) *draft {
	d := &draft{f: strictyaml.Parse(name, b, strictyaml.Limits{}), c: &Contract{}, codeUses: map[string]bool{}}
	d.decode()
	return d
}

// seal takes the set's digest.
func (s *Set) seal(st *site) {
	contracts := map[string]any{}
	for name, c := range s.contracts {
		contracts[name] = hexDigest(c.digest)
	}
	s.digest = digest("set", map[string]any{"contracts": contracts, "site": hexDigest(st.digest)})
}
