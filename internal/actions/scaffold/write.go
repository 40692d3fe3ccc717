package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"chatelaine/internal/actions"
)

// ErrThere says that the folder is there already. Nothing was written.
var ErrThere = errors.New("it is there already")

// Written says what was made.
type Written struct {
	Dir   string   // contracts/ACTION
	Files []string // below Dir, sorted
	Site  string   // the suggested site file
}

// Files are the skeleton's files by their path below the contract's folder.
func (o *Outline) Files() map[string]string {
	o.sortInputs()
	files := map[string]string{"contract.yaml": o.contract()}
	for name, text := range o.fixtures() {
		files[filepath.Join("fixtures", name)] = text
	}
	return files
}

// Write makes contracts/ACTION, whole or not at all: everything is written into
// a hidden folder beside it, loaded there as the daemon would load it, and then
// moved. An existing folder is ErrThere and stays as it is. Problems of the load
// are an error of this package; they come back as actions.Problems.
func (o *Outline) Write(contracts string) (Written, error) {
	final := filepath.Join(contracts, o.Action)
	if _, err := os.Lstat(final); err == nil {
		return Written{}, ErrThere
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Written{}, err
	}
	if err := os.MkdirAll(contracts, 0o755); err != nil {
		return Written{}, err
	}
	work, err := os.MkdirTemp(contracts, ".new-"+o.Action+"-")
	if err != nil {
		return Written{}, err
	}
	defer os.RemoveAll(work)
	out := Written{Dir: final, Site: o.Site()}
	made := filepath.Join(work, "contracts", o.Action)
	for name, text := range o.Files() {
		out.Files = append(out.Files, name)
		if err := writeFile(filepath.Join(made, name), text); err != nil {
			return Written{}, err
		}
	}
	slices.Sort(out.Files)
	site := filepath.Join(work, "targets.yaml")
	if err := writeFile(site, out.Site); err != nil {
		return Written{}, err
	}
	if _, problems := actions.LoadSet(site, filepath.Join(work, "contracts")); len(problems) > 0 {
		return Written{}, fmt.Errorf("the skeleton does not load: %w", problems)
	}
	// A folder that appeared meanwhile and holds anything is not replaced.
	if err := os.Rename(made, final); errors.Is(err, fs.ErrExist) {
		return Written{}, ErrThere
	} else if err != nil {
		return Written{}, err
	}
	return out, nil
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
