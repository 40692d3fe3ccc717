// Command mutate switches off every check of internal/validate, one at a time,
// in a copy of the package, and names the test that turns red. A check whose
// loss no test notices fails the run, unless spared says why nobody can notice.
//
// It reads the source and makes one copy in which every check has a switch,
// compiles the tests of that copy once, and runs them once for each switch. It
// must never touch the package itself, and only `make mutate` runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "write the table of docs/conformance.md anew")
	only := flag.String("only", "", "a regular expression; only checks whose name it matches")
	keep := flag.Bool("keep", false, "leave the copy where it is")
	flag.Parse()
	if err := run(*write, *only, *keep); err != nil {
		fmt.Fprintf(os.Stderr, "mutate: %v\n", err)
		os.Exit(1)
	}
}

func run(write bool, only string, keep bool) error {
	filter, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	c, err := newCopy()
	if err != nil {
		return err
	}
	if !keep {
		defer os.RemoveAll(c.dir)
	}
	mutants, err := c.rewrite()
	if err != nil {
		return err
	}
	fmt.Printf("%d checks, the copy is in %s\n", len(mutants), c.dir)
	if err := c.build(); err != nil {
		return err
	}
	var alive []string
	for i := range mutants {
		m := &mutants[i]
		if !filter.MatchString(m.name) {
			continue
		}
		if m.guard, err = c.try(m.switchNumber); err != nil {
			return err
		}
		if m.guard == "" && spared[m.name] == "" {
			alive = append(alive, m.name)
		}
		fmt.Println(m.row())
	}
	if only == "" {
		err = errors.Join(spareStillNeeded(mutants), page(filepath.Join(c.root, "docs", "conformance.md"), mutants, write))
	}
	if len(alive) > 0 {
		err = errors.Join(err, fmt.Errorf("%d checks that no test guards:\n  %s", len(alive), strings.Join(alive, "\n  ")))
	}
	return err
}

func spareStillNeeded(mutants []mutant) error {
	var errs []error
	for name := range spared {
		i := slices.IndexFunc(mutants, func(m mutant) bool { return m.name == name })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("spared names %q, which is no check", name))
		case mutants[i].guard != "":
			errs = append(errs, fmt.Errorf("spared names %q, which %s guards", name, mutants[i].guard))
		}
	}
	return errors.Join(errs...)
}

// row is the check's line in the table.
func (m mutant) row() string {
	guard := "`" + m.guard + "`"
	if m.guard == "" {
		if guard = "**none**"; spared[m.name] != "" {
			guard = spared[m.name]
		}
	}
	return fmt.Sprintf("| `%s` | %s |", strings.NewReplacer("||", "∨", "|", `\|`).Replace(m.name), guard)
}

const (
	begin = "<!-- checks: written by make mutate -->\n"
	end   = "<!-- end of checks -->\n"
)

// page writes the table, or holds it to the checks that there are. Which of
// several guards turns red first may change from run to run; it is not compared.
func page(path string, mutants []mutant, write bool) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	old, after, also := strings.Cut(rest, end)
	if !ok || !also {
		return errors.New("docs/conformance.md has no place for the table of checks")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d checks.\n\n| check, switched off | turns red |\n|---|---|\n", len(mutants))
	missing := 0
	for _, m := range mutants {
		row := m.row()
		first, _, _ := strings.Cut(row, "` | ")
		if !strings.Contains(old, first) {
			missing++
		}
		b.WriteString(row + "\n")
	}
	b.WriteString("\n")
	if write {
		return os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644)
	}
	if missing > 0 || strings.Count(old, "\n| `") != len(mutants) {
		return fmt.Errorf("docs/conformance.md does not list the checks that there are: %d are missing; run make mutate UPDATE=-write", missing)
	}
	return nil
}
