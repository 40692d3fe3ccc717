package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	target    = "internal/validate"
	witness   = "internal/validate/conformance" // its tests guard too
	variable  = "VALIDATE_CHECK_OFF"
	hangs     = 60               // seconds of processor time; a run takes a second or two
	stands    = 20 * time.Minute // of the clock: what waits for something that never comes uses no processor
	slowTests = 250 * time.Millisecond

	// Tests of cost, of pages, and with very many cases: what only they notice
	// has no guard of its own.
	noGuards = "Cheap|Memory|Linear|Boundary(Table|Page)|OnlyWhatWasPicked|TestEnginesAgree"
)

// scratch is a copy of the target and of what its tests need.
type scratch struct {
	root, dir string
	suites    []suite
}

// suite is one compiled test program, with the tests to run in one go.
type suite struct {
	name, program, folder string
	args                  []string
}

func newCopy() (*scratch, error) {
	root, err := output(".", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	c := &scratch{root: root, dir: dir}
	folders, err := output(root, "go", "list", "-deps", "-test", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", "./"+target, "./"+witness)
	if err != nil {
		return nil, err
	}
	// A package and its test variants have one folder.
	for _, folder := range slices.Compact(slices.Sorted(strings.FieldsSeq(folders))) {
		if err := c.copyFolder(folder); err != nil {
			return nil, err
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		if err := c.copyFile(filepath.Join(root, file)); err != nil {
			return nil, err
		}
	}
	return c, c.copyFolder(filepath.Join(root, "docs")) // tests hold pages to the code
}

// copyFolder takes the files of one package, and its test data whole.
func (c *scratch) copyFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case e.Name() == "testdata":
			err = c.copyTree(path)
		case e.Type().IsRegular():
			err = c.copyFile(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *scratch) copyTree(folder string) error {
	return os.CopyFS(c.place(folder), os.DirFS(folder))
}

func (c *scratch) place(path string) string {
	return filepath.Join(c.dir, strings.TrimPrefix(path, c.root))
}

func (c *scratch) copyFile(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	to := c.place(path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o644)
}

var duration = regexp.MustCompile(`(?m)^--- PASS: (Test\w+) \((\d+\.\d+)s\)`)

// build compiles the tests and runs them once with every check on. Tests that
// take long then run apart, after the others, so that most checks are quick.
func (c *scratch) build() error {
	var last []suite
	for _, folder := range []string{target, witness} {
		program := filepath.Join(c.dir, strings.ReplaceAll(folder, "/", "-")+".test")
		if out, err := output(c.dir, "go", "test", "-c", "-o", program, "./"+folder); err != nil {
			return fmt.Errorf("the copy does not compile: %w\n%s", err, out)
		}
		s := suite{name: filepath.Base(folder), program: program, folder: filepath.Join(c.dir, folder), args: []string{"-test.skip", noGuards}}
		out, ok := s.run(0)
		if !ok {
			return fmt.Errorf("the tests of %s fail with every check on:\n%s", folder, out)
		}
		var slow []string
		for _, m := range duration.FindAllStringSubmatch(out, -1) {
			if took, err := strconv.ParseFloat(m[2], 64); err == nil && took >= slowTests.Seconds() {
				slow = append(slow, m[1])
			}
		}
		quick := s
		if len(slow) > 0 {
			list := "^(" + strings.Join(slow, "|") + ")$"
			quick.args = []string{"-test.skip", noGuards + "|" + list}
			s.args = []string{"-test.run", list}
			last = append(last, s)
		}
		c.suites = append(c.suites, quick)
	}
	c.suites = append(c.suites, last...)
	return nil
}

// run runs the tests with one check off; zero is none. A run that hangs counts as
// noticed, so its time is the processor's: by the clock a busy machine would make
// guards out of nothing.
func (s suite) run(off int) (string, bool) {
	ctx, stop := context.WithTimeout(context.Background(), stands)
	defer stop()
	limited := []string{"-c", fmt.Sprintf(`ulimit -t %d && exec "$0" "$@"`, hangs), s.program, "-test.short", "-test.failfast", "-test.v", "-test.timeout", "0"}
	cmd := exec.CommandContext(ctx, "sh", append(limited, s.args...)...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(off))
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

var (
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	started = regexp.MustCompile(`(?m)^=== RUN   (\w+)`)
)

// try returns the test that notices, "" for none.
func (c *scratch) try(off int) (string, error) {
	for _, s := range c.suites {
		out, ok := s.run(off)
		if ok {
			continue
		}
		name := "the program does not start"
		if m := failed.FindStringSubmatch(out); m != nil {
			name = m[1]
		} else if all := started.FindAllStringSubmatch(out, -1); all != nil {
			name = all[len(all)-1][1] // it crashed or hung in this one
		}
		if s.name != filepath.Base(target) {
			name = s.name + "." + name
		}
		return name, nil
	}
	return "", nil
}

func output(dir, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), errors.Join(err, errors.New(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
