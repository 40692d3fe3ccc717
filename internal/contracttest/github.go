package contracttest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"chatelaine/internal/actions"
)

// GitHub writes one annotation line for each fixture that failed, each hole and
// each place that no fixture reached, in the workflow commands that build
// servers of GitHub's kind read from standard output. Places are errors where
// coverage is required, else warnings.
func (r Report) GitHub(w io.Writer, requireCoverage bool) error {
	a := annotations{w: w}
	for _, c := range r.Cases {
		if c.OK {
			continue
		}
		text := "want " + c.Want + ", got " + c.Got + " (decided by " + c.Decided() + ")"
		if c.Reason != "" {
			text += "\n" + c.Reason
		}
		for _, d := range c.Diffs {
			text += "\n" + d.What + ": want " + d.Want + ", got " + d.Got
		}
		a.put("error", c.Path, c.Line, "fixture: "+c.Fixture, text)
	}
	for _, m := range r.Mutations {
		for _, h := range m.Holes {
			a.put("error", h.Contract, h.Line, "hole: "+h.Kind+" at "+h.Row, h.Why+" (at "+quoted(h.Place)+" stood "+h.Value+", from "+h.File+")\n"+h.WayOut)
		}
	}
	level := "warning"
	if requireCoverage {
		level = "error"
	}
	for _, c := range r.Coverage {
		for _, p := range c.Missing {
			a.put(level, c.Contract, p.Line, "coverage: "+p.Name, p.Why)
		}
	}
	return a.err
}

// GitHubProblems writes one annotation line for each mistake that kept files
// from being loaded.
func GitHubProblems(w io.Writer, problems actions.Problems) error {
	a := annotations{w: w}
	for _, p := range problems {
		a.put("error", p.File, p.Line, p.Rule, p.Message+"\n"+p.Hint)
	}
	return a.err
}

func quoted(s string) string { return `"` + s + `"` }

// annotations writes workflow commands and keeps the first error.
type annotations struct {
	w   io.Writer
	err error
}

// The escapes of workflow commands: a message must not end its line, a property
// must not end itself.
var (
	inMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	inProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func (a *annotations) put(level, file string, line int, title, message string) {
	if a.err != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(message), "\n")
	for i, l := range lines {
		lines[i] = visible(l)
	}
	_, a.err = fmt.Fprintf(a.w, "::%s file=%s,line=%d,title=%s::%s\n",
		level, inProperty.Replace(visible(near(file))), max(line, 1), inProperty.Replace(visible(title)), inMessage.Replace(strings.Join(lines, "\n")))
}

// near is a path as the repository has it: relative to the working folder,
// where it lies below.
func near(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, full)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.ToSlash(rel)
}
