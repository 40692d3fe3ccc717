package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"chatelaine/internal/actions"
)

// The form of SARIF 2.1.0 (OASIS Standard, March 2020), the parts that code
// scanning reads. Member names are those of the standard.

const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	// sarifHelpBase names our page of rules where nobody said where it is
	// published; the standard wants an absolute address.
	sarifHelpBase = "chatelaine:docs/lint.md"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID      string        `json:"id"`
	Short   sarifText     `json:"shortDescription"`
	Full    sarifText     `json:"fullDescription"`
	Help    sarifText     `json:"help"`
	HelpURI string        `json:"helpUri"`
	Default sarifDefault  `json:"defaultConfiguration"`
	More    sarifRuleTags `json:"properties"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifDefault struct {
	Level string `json:"level"`
}

type sarifRuleTags struct {
	Decider string `json:"decider"`
	Page    string `json:"page"`
}

type sarifResult struct {
	RuleID       string             `json:"ruleId"`
	RuleIndex    *int               `json:"ruleIndex,omitzero"`
	Level        string             `json:"level"`
	Message      sarifText          `json:"message"`
	Locations    []sarifLocation    `json:"locations"`
	Suppressions []sarifSuppression `json:"suppressions,omitzero"`
}

type sarifSuppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitzero"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitzero"`
}

// sarifOf writes findings as a log with every rule. What an exception sets
// aside is there as suppressed.
func sarifOf(found []finding, helpBase string) sarifLog {
	index := map[string]int{}
	rules := []sarifRule{}
	for i, r := range actions.Rules() {
		index[r.ID] = i
		rules = append(rules, sarifRule{
			ID: r.ID, Short: sarifText{r.Title + "."}, Full: sarifText{r.Reason}, Help: sarifText{helpText(r)},
			HelpURI: helpBase + "#" + r.ID, Default: sarifDefault{r.Severity.String()},
			More: sarifRuleTags{r.Decider.String(), r.Page},
		})
	}
	results := []sarifResult{}
	for _, x := range found {
		r := sarifResult{RuleID: x.Rule, Level: x.Severity, Message: sarifText{x.Message}, Locations: []sarifLocation{{sarifPhysical{Artifact: sarifArtifact{fileURI(x.File)}}}}}
		if x.Hint != "" {
			r.Message.Text += "; " + x.Hint
		}
		if i, ok := index[x.Rule]; ok {
			r.RuleIndex = &i
		}
		if x.Line > 0 {
			r.Locations[0].Physical.Region = &sarifRegion{x.Line, x.Column}
		}
		if x.SetAside != "" {
			r.Suppressions = []sarifSuppression{{"inSource", x.SetAside}}
		}
		results = append(results, r)
	}
	return sarifLog{sarifSchema, sarifVersion, []sarifRun{{
		Tool:       sarifTool{sarifDriver{"chatelaine contract lint", programVersion(), rules}},
		ColumnKind: "unicodeCodePoints", Results: results,
	}}}
}

// helpText is a rule's reason and its good example in plain text.
func helpText(r actions.Rule) string {
	ex, ok := r.Example()
	if !ok {
		return r.Reason
	}
	var b strings.Builder
	b.WriteString(r.Reason + "\n\nWrite, for example:\n")
	for _, f := range ex.Good {
		b.WriteString(f.String())
	}
	return b.String()
}

// fileURI names a file from the working folder where it lies below it, else by
// its whole path.
func fileURI(path string) string {
	wd, err := os.Getwd()
	whole := path
	if err == nil && !filepath.IsAbs(whole) {
		whole = filepath.Join(wd, whole)
	}
	if rel, relErr := filepath.Rel(wd, whole); err == nil && relErr == nil && filepath.IsLocal(rel) {
		return (&url.URL{Path: filepath.ToSlash(rel)}).String()
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(whole)}).String()
}

// absoluteURI says whether a text is an absolute URI without a fragment.
func absoluteURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && u.Fragment == "" && !strings.Contains(s, "#")
}
