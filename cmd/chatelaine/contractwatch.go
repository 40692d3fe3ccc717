package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"chatelaine/internal/actions"
)

// quiet is how long nothing may change before what changed is played: an editor
// writes a file in several steps, a checkout many files.
const quiet = 150 * time.Millisecond

// contractWatch plays what changes.
type contractWatch struct {
	a       *app
	t       contractTest
	w       *fsnotify.Watcher
	pending map[string]bool // actions that were changed and not played yet
	all     bool            // every action is to be played
}

// watchContracts plays everything once and then what changes, until ctx ends,
// which is how the command is meant to end.
func (a *app) watchContracts(ctx context.Context, t contractTest) error {
	if set, problems := actions.LoadDrafts(t.files.site, t.files.contracts); len(problems) == 0 {
		if err := knownActions(set, t.actions); err != nil {
			return err // a misspelt name would be watched for ever
		}
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return refused("this machine does not tell of changes: "+err.Error(), "run the command without --watch")
	}
	defer w.Close()
	cw := &contractWatch{a: a, t: t, w: w, pending: map[string]bool{}, all: true}
	for {
		if err := cw.look(); err != nil {
			return err
		}
		if err := cw.play(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if !cw.wait(ctx) {
			return nil
		}
	}
}

// look watches every folder that holds a contract or a fixture, and that of the
// site file. A folder that is watched already stays so.
func (c *contractWatch) look() error {
	folders := []string{filepath.Dir(c.t.files.site)}
	err := filepath.WalkDir(c.t.files.contracts, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil // what went away meanwhile is told by its own event
	})
	if err != nil {
		return err
	}
	for _, dir := range folders {
		if err := c.w.Add(dir); err != nil && isFolder(dir) {
			return refused(fmt.Sprintf("cannot watch %s: %v", dir, plainCause(err)), "this machine may allow more watches than it does now")
		}
	}
	return nil
}

func isFolder(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// clearScreen empties a terminal and goes to its first line.
const clearScreen = "\x1b[2J\x1b[H"

// play runs what is to be played. What does not load stays to be played.
func (c *contractWatch) play(ctx context.Context) error {
	t := c.t
	if !c.all {
		t.actions = c.chosen()
		if len(t.actions) == 0 {
			return nil
		}
	}
	if isTerminal(c.a.out) {
		fmt.Fprint(c.a.out, clearScreen)
	}
	rep, problems, err := t.run(ctx)
	switch {
	case err != nil:
		c.tell(err)
	case len(problems) > 0:
		c.tell(c.a.testProblems(problems, t))
		return ctx.Err()
	default:
		if err := c.a.report(rep, t); err != nil {
			c.tell(err)
		}
	}
	c.all, c.pending = false, map[string]bool{}
	c.a.note("watching %s; interrupt to end", printable(c.t.files.contracts))
	return ctx.Err()
}

// chosen are the changed actions that are there, among those asked for.
func (c *contractWatch) chosen() []string {
	var out []string
	for _, action := range slices.Sorted(maps.Keys(c.pending)) {
		asked := len(c.t.actions) == 0 || slices.Contains(c.t.actions, action)
		if asked && isFile(filepath.Join(c.t.files.contracts, action, "contract.yaml")) {
			out = append(out, action)
		}
	}
	return out
}

// tell writes how a turn ended; the watch goes on.
func (c *contractWatch) tell(err error) {
	for _, line := range asFailure(classify(err)).lines() {
		c.a.note("%s", line)
	}
}

// wait gathers changes until nothing changes for a while; false when ctx ends.
func (c *contractWatch) wait(ctx context.Context) bool {
	timer := time.NewTimer(quiet)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case e, ok := <-c.w.Events:
			if !ok {
				return false
			}
			if c.changed(e) {
				timer.Reset(quiet)
			}
		case err, ok := <-c.w.Errors:
			if !ok {
				return false
			}
			// Changes may have been lost: everything is played.
			c.a.note("watching: %v", err)
			c.all = true
			timer.Reset(quiet)
		case <-timer.C:
			return true
		}
	}
}

// changed notes what an event is about; false where it is about nothing that is
// played.
func (c *contractWatch) changed(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod || c.t.junit != "" && sameFile(e.Name, c.t.junit) {
		return false
	}
	rel, err := filepath.Rel(c.t.files.contracts, e.Name)
	action, _, deeper := strings.Cut(filepath.ToSlash(rel), "/")
	if err != nil || action == ".." || !deeper && !isFolder(e.Name) {
		// The site file, or a file of keys or certificates beside it. A folder
		// that went away is one that no contract has.
		c.all = true
		return true
	}
	c.pending[action] = true
	return true
}

func sameFile(a, b string) bool {
	x, err := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err == nil && err2 == nil && x == y
}
