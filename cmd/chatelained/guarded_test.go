package main

import (
	"errors"
	"strings"
	"testing"

	"chatelaine/internal/actions"
)

// A panic of ours over a file is a mistake that names the folder, and tells
// nothing of what the file held.
func TestGuarded(t *testing.T) {
	set, problems := guarded("/etc/chatelaine", func() (*actions.Set, actions.Problems) { panic(errors.New("planted-text")) })
	if set != nil || len(problems) != 1 || !strings.HasPrefix(problems.Error(), "/etc/chatelaine: ") || strings.Contains(problems.Error(), "planted") {
		t.Errorf("%v, %v", set, problems)
	}
	kept := &actions.Set{}
	if set, problems = guarded("", func() (*actions.Set, actions.Problems) { return kept, nil }); set != kept || problems != nil {
		t.Errorf("%v, %v", set, problems)
	}
}
