package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/scaffold"
)

// questions asks a person at the terminal for what no flag gave.
type questions struct {
	a    *app
	ctx  context.Context
	next func() (string, error)
}

// askTries is how often one answer may be wrong before the command ends.
const askTries = 5

// ask fills the answers. A question whose flag was given is not asked.
func (a *app) ask(ctx context.Context, cmd *cobra.Command, to *scaffold.Answers) error {
	in := bufio.NewReader(a.in)
	q := questions{a: a, ctx: ctx, next: func() (string, error) { return in.ReadString('\n') }}
	given := func(flag string) bool { return cmd.Flags().Changed(flag) }
	for _, x := range questionsOf(to) {
		if given(x.flag) {
			continue
		}
		var err error
		if *x.to, err = q.one(x.text, x.standard(), x.check); err != nil {
			return err
		}
	}
	if err := q.inputs(to, given("input")); err != nil {
		return err
	}
	if given("output") {
		return nil
	}
	return q.many("what comes back? an output NAME@POINTER:KIND=BOUND, empty for no more", &to.Outputs, func(s string) error {
		return orError(fits(to, func(a *scaffold.Answers, s string) { a.Outputs = append(slices.Clone(a.Outputs), s) })(s))
	})
}

// question is one of those that have one answer.
type question struct {
	flag, text string
	standard   func() string
	to         *string
	check      func(string) string
}

func questionsOf(to *scaffold.Answers) []question {
	return []question{
		{"effect", "does it read, change or destroy?", func() string { return "read" }, &to.Effect, oneOf("read", "change", "destroy")},
		{"service", "which service? the name of its target", func() string { return "service" }, &to.Service, checkService},
		{"method", "which method?", func() string { return usualMethod(to.Effect) }, &to.Method, oneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")},
		{"path", "which path? {NAME} stands for an input", func() string { return "/" + to.Action }, &to.Path, checkPath},
		{"summary", "what does it do, in one sentence for an agent?", func() string { return usualSummary(to.Action) }, &to.Summary, fits(to, func(a *scaffold.Answers, s string) { a.Summary = s })},
		{"owner", "who answers for it?", func() string { return "nobody yet" }, &to.Owner, fits(to, func(a *scaffold.Answers, s string) { a.Owner = s })},
	}
}

// wrongFlags are the mistakes of the flags that were given, so that nobody answers
// questions for nothing.
func wrongFlags(cmd *cobra.Command, to scaffold.Answers) error {
	var wrong []string
	given := questionsOf(&to)
	for i, x := range questionsOf(&scaffold.Answers{Action: to.Action}) { // held against no other answer
		if why := x.check(*given[i].to); cmd.Flags().Changed(x.flag) && why != "" {
			wrong = append(wrong, why)
		}
	}
	for _, s := range to.Inputs {
		if _, err := scaffold.ParseInput(s); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	for _, s := range to.Outputs {
		if _, err := scaffold.ParseOutput(s); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return usage(strings.Join(wrong, "\n"), "nothing was written; see chatelaine contract new --help")
}

// answer reads one line. Where none came the cursor stands behind the question,
// and what is said next begins on a line of its own.
func (q questions) answer() (string, error) {
	s, err := readAnswer(q.ctx, q.next)
	if err != nil {
		fmt.Fprintln(q.a.err)
	}
	return s, err
}

// one asks one question until the answer is one.
func (q questions) one(text, standard string, check func(string) string) (string, error) {
	for range askTries {
		fmt.Fprintf(q.a.err, "%s [%s]: ", text, standard)
		s, err := q.answer()
		if err != nil {
			return "", err
		}
		if s == "" {
			s = standard
		}
		why := check(s)
		if why == "" {
			return s, nil
		}
		q.a.note("%s", printable(why))
	}
	return "", usage("no answer that can be taken; nothing was done")
}

// inputs asks for the kinds of the path's inputs, and then for others.
func (q questions) inputs(to *scaffold.Answers, given bool) error {
	if given {
		return nil
	}
	fmt.Fprintf(q.a.err, "kinds of inputs and outputs:\n  %s\n", strings.Join(scaffold.KindHelp, "\n  "))
	for _, m := range hole.FindAllStringSubmatch(to.Path, -1) {
		name := strings.TrimPrefix(m[1], "input.")
		if slices.ContainsFunc(to.Inputs, func(s string) bool { return strings.HasPrefix(s, name+":") }) {
			continue
		}
		kind, err := q.one("the input "+name+" stands in the path; its kind?", "word=64", func(s string) string {
			in, err := scaffold.ParseInput(name + ":" + s)
			if err == nil && !in.Shape.FitsPath() {
				return "what stands in a path is a word, a choice of words or a whole number of 0 or more"
			}
			return sentenceOf(err)
		})
		if err != nil {
			return err
		}
		to.Inputs = append(to.Inputs, name+":"+kind)
	}
	return q.many("another input? NAME:KIND=BOUND, ? behind the name where it is optional, empty for no more", &to.Inputs, func(s string) error {
		return orError(fits(to, func(a *scaffold.Answers, s string) { a.Inputs = append(slices.Clone(a.Inputs), s) })(s))
	})
}

var hole = regexp.MustCompile(`\{([^{}]*)\}`)

// many asks until the answer is empty.
func (q questions) many(text string, to *[]string, check func(string) error) error {
	for wrong := 0; wrong < askTries; {
		fmt.Fprintf(q.a.err, "%s: ", text)
		s, err := q.answer()
		if err != nil {
			return err
		}
		if s == "" {
			return nil
		}
		if err := check(s); err != nil {
			q.a.note("%s", printable(err.Error()))
			wrong++
			continue
		}
		*to = append(*to, s)
	}
	return usage("no answer that can be taken; nothing was done")
}

func sentenceOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func oneOf(words ...string) func(string) string {
	return func(s string) string {
		if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, s) }) {
			return ""
		}
		return fmt.Sprintf("%q is none of %s", s, strings.Join(words, ", "))
	}
}

func checkService(s string) string {
	if actions.IsTargetName(s) {
		return ""
	}
	return fmt.Sprintf("%q is no name of a target: small letters, digits, - _ and .", s)
}

func checkPath(s string) string {
	if strings.HasPrefix(s, "/") && !strings.ContainsAny(s, "?# ") {
		return ""
	}
	return "a path begins with / and has no query"
}

// fits checks an answer together with those before it, so that a wrong one is told
// where it is typed and not when everything else was.
func fits(to *scaffold.Answers, put func(*scaffold.Answers, string)) func(string) string {
	return func(s string) string {
		_, before := scaffold.FromAnswers(*to)
		with := *to
		put(&with, s)
		_, after := scaffold.FromAnswers(with)
		for _, why := range after {
			if !slices.Contains(before, why) {
				return why
			}
		}
		return ""
	}
}

func orError(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(why)
}

func usualMethod(effect string) string {
	if m := map[string]string{"read": "GET", "destroy": "DELETE"}[effect]; m != "" {
		return m
	}
	return "POST"
}

func usualSummary(action string) string {
	words := strings.ReplaceAll(action, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:] + "."
}
