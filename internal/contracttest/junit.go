package contracttest

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"chatelaine/internal/actions"
)

// The elements of a JUnit report, as build servers read them. There is no
// standard; these members are the ones that all of them know.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		File    string      `xml:"file,attr,omitempty"`
		Line    int         `xml:"line,attr,omitempty"`
		Time    string      `xml:"time,attr"`
		Failure *junitFault `xml:"failure"`
		Error   *junitFault `xml:"error"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as XML for build servers: a suite a contract with a
// case a fixture; near-misses and, where it is required, coverage in suites of
// their own.
func (r Report) JUnit(w io.Writer, requireCoverage bool) error {
	var out junitSuites
	for i, c := range r.Cases {
		if i == 0 || r.Cases[i-1].Action != c.Action {
			out.Suites = append(out.Suites, junitSuite{Name: visible(c.Action)})
		}
		out.Suites[len(out.Suites)-1].add(junitOf(c), c.Took)
	}
	for _, m := range r.Mutations {
		out.Suites = append(out.Suites, junitHoles(m))
	}
	if requireCoverage {
		for _, c := range r.Coverage {
			out.Suites = append(out.Suites, junitCoverage(c))
		}
	}
	return out.write(w, r.Took)
}

// JUnitProblems writes that nothing was played, because files did not load.
func JUnitProblems(w io.Writer, problems actions.Problems) error {
	s := junitSuite{Name: "loading"}
	for _, p := range problems {
		s.add(junitCase{
			Class: "loading", Name: visible(fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Rule)), File: visible(p.File), Line: p.Line,
			Error: &junitFault{Message: visible(p.Message), Type: visible(p.Rule), Text: visible(p.Hint)},
		}, 0)
	}
	return (&junitSuites{Suites: []junitSuite{s}}).write(w, 0)
}

func (s *junitSuite) add(c junitCase, took time.Duration) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Error != nil {
		s.Errors++
	}
	c.Time = seconds(took)
	s.Cases = append(s.Cases, c)
}

func (s *junitSuites) write(w io.Writer, took time.Duration) error {
	s.Name, s.Time = "chatelaine contract test", seconds(took)
	for i := range s.Suites {
		suite := &s.Suites[i]
		s.Tests, s.Failures, s.Errors = s.Tests+suite.Tests, s.Failures+suite.Failures, s.Errors+suite.Errors
		if suite.Time == "" {
			suite.Time = seconds(0)
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func junitOf(c Case) junitCase {
	out := junitCase{Class: visible(c.Action), Name: visible(filepath.Base(c.File) + ": " + c.Fixture), File: visible(c.Path), Line: c.Line}
	if c.Era != "" {
		out.Name = c.Era + "/" + out.Name
	}
	if c.OK {
		return out
	}
	var text strings.Builder
	fmt.Fprintf(&text, "decided by %s\n", visible(c.Decided()))
	if c.Reason != "" {
		fmt.Fprintf(&text, "because %s\n", visible(c.Reason))
	}
	for _, d := range c.Diffs {
		fmt.Fprintf(&text, "%s\n  want %s\n  got  %s\n", visible(d.What), visible(d.Want), visible(d.Got))
	}
	out.Failure = &junitFault{Message: visible("want " + c.Want + ", got " + c.Got), Type: visible(c.Decided()), Text: text.String()}
	return out
}

func junitHoles(m Mutation) junitSuite {
	name := visible(m.Action) + " near-misses"
	s := junitSuite{Name: name}
	for _, h := range m.Holes {
		s.add(junitCase{
			Class: name, Name: visible(h.Row + ": " + h.Kind + " at " + h.Place), File: visible(h.Contract), Line: h.Line,
			Failure: &junitFault{Message: visible(h.Why), Type: h.Kind, Text: visible("there "+h.Value+" in "+h.File) + "\nway out: " + visible(h.WayOut) + "\n"},
		}, 0)
	}
	if len(m.Holes) == 0 {
		s.add(junitCase{Class: name, Name: fmt.Sprintf("%d near-misses, no hole", m.Made)}, 0)
	}
	return s
}

func junitCoverage(c Coverage) junitSuite {
	name := visible(c.Action) + " coverage"
	s := junitSuite{Name: name}
	one := junitCase{Class: name, Name: fmt.Sprintf("%d of %d places", c.Reached, c.Places), File: visible(c.Contract)}
	if len(c.Missing) > 0 {
		one.Line = c.Missing[0].Line
		one.Failure = &junitFault{Message: "no fixture reaches " + MissingWords(c.Missing, len(c.Missing)), Type: "coverage"}
	}
	s.add(one, 0)
	return s
}
