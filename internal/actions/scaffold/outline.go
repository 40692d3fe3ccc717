package scaffold

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"chatelaine/internal/actions"
)

// Place says where an input goes in the request.
type Place uint8

// The places. An input never stands in a header or in the host.
const (
	InPath Place = iota + 1
	InQuery
	InBody
)

// Input is one thing that an agent may say.
type Input struct {
	Name     string // of the input
	Member   string // of the query or the body; the placeholder of the path
	Place    Place
	Required bool
	About    string // one line for the author; it stays a comment
	Shape    Shape
}

// Output is one fact that leaves.
type Output struct {
	Name     string
	Pointer  string // into the answer's body
	Required bool
	Shape    Shape
	Each     []Output // for a list of objects: the members of its elements
}

// Failure is a status that the description names, with a code of the action's
// own. 401, 403, 404, 408, 429 and 5xx have built-in rows.
type Failure struct {
	Status  int
	Code    string
	Message string
	Media   string // "json", "text" or "none"
	Body    string // of an example
}

// Identity is a suggestion for the site file.
type Identity struct {
	Kind     string   // "bearer", "header", "basic", "client_certificate", "oauth2_client" or "none"
	Header   string   // of kind header
	Username string   // of kind basic
	TokenURL string   // of kind oauth2_client
	Scopes   []string // of kind oauth2_client, none or more
}

// Outline is everything that a skeleton is made of.
type Outline struct {
	Action, Summary, Owner string
	Effect                 string // "read", "change" or "destroy"
	Service                string // name of the suggested target
	URL                    string // of the suggested target
	Identity               Identity
	Constants              map[string]string // of the target, for what no agent may choose
	Method                 string
	Path                   string // with {input.NAME} and {target.NAME}
	Body                   string // "json", "form", or "" for none
	Inputs                 []Input
	Status                 int   // of the success
	Answer                 Shape // of its body; the zero value where it has none
	Example                any   // of its body, nil where there is none
	Outputs                []Output
	Texts                  []Output // shown to people, apart from data
	Failures               []Failure
	IdempotencyHeader      string
	Source                 string   // what it was made from, for the first line
	Decisions              []string // what the author must decide
	LeftOut                []string // what is not there, and why
}

// Decide adds a line to what the author must decide.
func (o *Outline) Decide(format string, args ...any) {
	o.Decisions = appendNew(o.Decisions, oneLine(fmt.Sprintf(format, args...), maxNote))
}

// Leave adds a line about what is not there, and why.
func (o *Outline) Leave(what, why string) {
	o.LeftOut = appendNew(o.LeftOut, oneLine(what+": "+why, maxNote))
}

// maxNote bounds one line of the lists; a description may be long.
const maxNote = 240

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

const (
	// MaxInputs bounds what a first draft lets an agent say; a card shows 20.
	MaxInputs = 20
	// MaxOutputs bounds what a first draft lets out.
	MaxOutputs = 30
)

// check says what is wrong with an outline that a person gave. The result is
// empty where a skeleton can be written.
func (o *Outline) check() []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if !actions.IsActionName(o.Action) {
		bad("%q is no name of an action: small letters, digits and _, three to 64 of them", o.Action)
	}
	if !actions.IsTargetName(o.Service) {
		bad("%q is no name of a service: small letters, digits, - _ and .", o.Service)
	}
	out = append(out, o.checkMethod()...)
	if !strings.HasPrefix(o.Path, "/") || strings.ContainsAny(o.Path, "?# \\") {
		bad("the path %q begins with / and has no query", o.Path)
	}
	out = append(out, o.checkInputs()...)
	if len(o.Outputs) > MaxOutputs {
		bad("more than %d outputs", MaxOutputs)
	}
	if o.Method == "HEAD" && len(o.Outputs)+len(o.Texts) > 0 {
		bad("an answer to HEAD has no body, and an output is taken from the body: use GET, or take the outputs away and pick {header: NAME} in the draft")
	}
	names := map[string]bool{}
	for _, x := range append(slices.Clone(o.Outputs), o.Texts...) {
		if names[x.Name] {
			bad("the output %q stands twice", x.Name)
		}
		names[x.Name] = true
	}
	return out
}

func (o *Outline) checkMethod() []string {
	reads := o.Method == "GET" || o.Method == "HEAD"
	switch {
	case !slices.Contains([]string{"read", "change", "destroy"}, o.Effect):
		return []string{fmt.Sprintf("%q is no effect: read, change or destroy", o.Effect)}
	case !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, o.Method):
		return []string{fmt.Sprintf("%q is no method: GET, HEAD, POST, PUT, PATCH or DELETE", o.Method)}
	case o.Effect == "read" && !reads:
		return []string{fmt.Sprintf("a read uses GET or HEAD, not %s", o.Method)}
	case o.Effect != "read" && reads:
		return []string{fmt.Sprintf("a %s needs a method that changes something, not %s", o.Effect, o.Method)}
	case o.Method == "DELETE" && o.Effect != "destroy":
		return []string{"a DELETE request destroys: the effect is destroy"}
	}
	return nil
}

func (o *Outline) checkInputs() []string {
	var out []string
	seen := map[string]bool{}
	if len(o.Inputs) > MaxInputs {
		out = append(out, fmt.Sprintf("more than %d inputs", MaxInputs))
	}
	for _, in := range o.Inputs {
		if w := actions.ForbiddenInputWord(in.Name); w != "" {
			out = append(out, fmt.Sprintf("the input %q contains the word %q: what it would choose belongs to the operator's target", in.Name, w))
		} else if !actions.IsInputName(in.Name) {
			out = append(out, fmt.Sprintf("%q is no name of an input: letters, digits, _ and -, beginning with a letter", in.Name))
		}
		if in.Place != InPath && actions.ForbiddenMember(in.Member) {
			out = append(out, fmt.Sprintf("no input may be sent as %q", in.Member))
		}
		if seen[in.Name] {
			out = append(out, fmt.Sprintf("the input %q stands twice", in.Name))
		}
		seen[in.Name] = true
		if in.Place == InPath && !in.Shape.FitsPath() {
			out = append(out, fmt.Sprintf("the input %q stands in the path, so it is a word, a choice of words or a whole number of 0 or more", in.Name))
		}
	}
	for _, m := range placeholder.FindAllStringSubmatch(o.Path, -1) {
		root, name, _ := strings.Cut(m[1], ".")
		if root == "input" && !seen[name] {
			out = append(out, fmt.Sprintf("the path has {%s} and there is no input of that name", name))
		}
	}
	return out
}

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// sortInputs puts required inputs first, those of the path before the others.
func (o *Outline) sortInputs() {
	slices.SortStableFunc(o.Inputs, func(a, b Input) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Place, b.Place)
	})
}

// basePath is the path under which the suggested target answers.
func (o *Outline) basePath() string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}
