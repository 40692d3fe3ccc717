package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/scaffold"
	"chatelaine/internal/actions/scaffold/openapi"
)

// contractNew is one run of the command.
type contractNew struct {
	contracts, openapi, operation string
	answers                       scaffold.Answers
	json                          bool
}

func (a *app) contractNewCmd() *cobra.Command {
	n := contractNew{}
	cmd := &cobra.Command{
		Use: "new ACTION", Short: "Write the first draft of a contract",
		Long: `Write contracts/ACTION: a closed contract.yaml with bounded fields, and fixtures of
every kind. It is made of a few questions at the terminal, each of which a flag
answers too, or of one operation of an OpenAPI 3.0 or 3.1 description. What the
description leaves open is not taken over: it becomes a decision of yours, listed
here and at the top of contract.yaml, and what no contract may have is left out
with the reason. Nothing that is there is ever written over.

What it prints is the operator's part, a target and an identity for targets.yaml,
with the decisions as comments. The contract itself names neither.

An input is NAME:KIND=BOUND, an output NAME@POINTER:KIND=BOUND; ? behind a name
makes it optional. A {NAME} in the path is filled by the input of that name. Kinds:

  ` + strings.Join(scaffold.KindHelp, "\n  "),
		Example: "  chatelaine contract new get_release --effect read --service releases --method GET --path '/v1/releases/{id}' --input id:word=40 --output 'state:choice=queued|healthy|failed' --output created_at:time\n  chatelaine contract new create_ticket --openapi tickets.yaml --operation createTicket",
		Args:    exactly("ACTION"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			n.answers.Action = args[0]
			return a.newContract(cmd, n)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&n.contracts, "contracts", "", "folder of contract folders (default contracts/ in the configuration folder)")
	f.StringVar(&n.openapi, "openapi", "", "make it of an operation of this OpenAPI description, YAML or JSON")
	f.StringVar(&n.operation, "operation", "", "the operation's id, or 'METHOD /path'")
	f.StringVar(&n.answers.Effect, "effect", "", "read, change or destroy")
	f.StringVar(&n.answers.Service, "service", "", "name of the suggested target, such as releases")
	f.StringVar(&n.answers.Method, "method", "", "GET, HEAD, POST, PUT, PATCH or DELETE")
	f.StringVar(&n.answers.Path, "path", "", "path of the request, with {NAME} for an input")
	f.StringVar(&n.answers.URL, "url", "", "address of the suggested target; it is printed and never written into the contract")
	f.StringVar(&n.answers.Summary, "summary", "", "one sentence that discovery shows an agent")
	f.StringVar(&n.answers.Owner, "owner", "", "who answers for the contract")
	f.StringArrayVar(&n.answers.Inputs, "input", nil, "what an agent may say, NAME:KIND=BOUND; give it again for more")
	f.StringArrayVar(&n.answers.Outputs, "output", nil, "what comes back, NAME@POINTER:KIND=BOUND; give it again for more")
	jsonFlag(cmd, &n.json)
	return cmd
}

func (a *app) newContract(cmd *cobra.Command, n contractNew) error {
	if !actions.IsActionName(n.answers.Action) {
		return usage(fmt.Sprintf("%q is no name of an action", n.answers.Action), "small letters, digits and _, three to 64 of them, such as create_release")
	}
	if u := n.answers.URL; cmd.Flags().Changed("url") {
		if why := actions.TargetURLMistake(u); why != "" {
			return usage(fmt.Sprintf("--url %q is no address of a target: %s", u, why), "https://HOST[:PORT][/BASE/PATH]")
		}
	}
	if n.contracts == "" {
		p, err := a.places()
		if err != nil {
			return err
		}
		n.contracts = p.Contracts()
	}
	// The flags come first: what is wrong there is wrong for any folder. Questions
	// come last, so that nobody answers them for nothing.
	there := n.contracts + "/" + n.answers.Action
	if a.asks(n) {
		if err := wrongFlags(cmd, n.answers); err != nil {
			return err
		}
		if exists(there) {
			return alreadyThere(there)
		}
	}
	o, err := a.outlineOf(cmd, n)
	if err != nil {
		return err
	}
	if exists(there) {
		return alreadyThere(there)
	}
	w, err := o.Write(n.contracts)
	if err != nil {
		return notWritten(err, n)
	}
	return a.tellNew(o, w, n.json)
}

// asks says whether a person answers what no flag gave.
func (a *app) asks(n contractNew) bool {
	return n.openapi == "" && n.operation == "" && isTerminal(a.in)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func alreadyThere(path string) error {
	return refused(fmt.Sprintf("%s is there already; nothing was written", path), "take another name, or move that folder away")
}

func notWritten(err error, n contractNew) error {
	var problems actions.Problems
	switch {
	case errors.Is(err, scaffold.ErrThere):
		return alreadyThere(n.contracts + "/" + n.answers.Action)
	case errors.As(err, &problems):
		var lines []string
		for _, p := range problems {
			lines = append(lines, p.Message)
		}
		return refused("the draft would not load, so nothing was written: "+strings.Join(lines, "; "), "answer simpler, or report the description that made it")
	}
	return refused(fmt.Sprintf("cannot write into %s: %v", n.contracts, plainCause(err)), "name another folder with --contracts DIR")
}

// outlineOf asks, reads flags, or reads a description.
func (a *app) outlineOf(cmd *cobra.Command, n contractNew) (*scaffold.Outline, error) {
	if n.openapi != "" || n.operation != "" {
		return fromDescription(cmd, n)
	}
	var err error
	if a.asks(n) {
		err = a.ask(cmd.Context(), cmd, &n.answers)
	} else {
		err = needed(cmd)
	}
	if err != nil {
		return nil, err
	}
	o, wrong := scaffold.FromAnswers(n.answers)
	if len(wrong) > 0 {
		return nil, usage(strings.Join(wrong, "\n"), "nothing was written; see chatelaine contract new --help")
	}
	return o, nil
}

// needed names the flags without which nothing can be made and nobody asked.
func needed(cmd *cobra.Command) error {
	var missing []string
	for _, name := range []string{"effect", "service", "method", "path"} {
		if !cmd.Flags().Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return usage("contract new needs "+strings.Join(missing, ", ")+" where there is no terminal to ask at",
		"or make it of a description: --openapi FILE --operation ID")
}

func fromDescription(cmd *cobra.Command, n contractNew) (*scaffold.Outline, error) {
	for _, name := range []string{"method", "path", "input", "output"} {
		if cmd.Flags().Changed(name) {
			return nil, usage("--"+name+" stands in the description already", "take --"+name+" away, or --openapi and --operation")
		}
	}
	if n.openapi == "" {
		return nil, usage("--operation needs the description that it stands in", "name it with --openapi FILE")
	}
	b, err := readDescription(n.openapi)
	if err != nil {
		return nil, usage(fmt.Sprintf("cannot read %s: %v", n.openapi, plainCause(err)))
	}
	d, err := openapi.Parse(b)
	if err != nil {
		return nil, usage(fmt.Sprintf("%s: %v", n.openapi, err))
	}
	if n.operation == "" {
		return nil, usage("say which operation, with --operation ID", listed(d, "")...)
	}
	o, err := d.Outline(openapi.Options{
		Operation: n.operation, Action: n.answers.Action, Service: n.answers.Service,
		Summary: n.answers.Summary, Owner: n.answers.Owner, Effect: n.answers.Effect,
	})
	if err != nil {
		return nil, usage(fmt.Sprintf("%s: %v", n.openapi, err), listed(d, n.operation)...)
	}
	if n.answers.URL != "" {
		o.URL = n.answers.URL
	}
	if wrong := o.Complete(); len(wrong) > 0 {
		return nil, usage(strings.Join(wrong, "\n"), "nothing was written")
	}
	return o, nil
}

// readDescription reads no more than the reader of descriptions takes.
func readDescription(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, openapi.MaxBytes+1))
}

// listed are hints at the operations of a description: the nearest, or the first
// of them.
func listed(d *openapi.Document, typed string) []string {
	const most = 20
	var names []string
	for _, op := range d.Operations() {
		name := op.ID
		if name == "" {
			name = op.Method + " " + op.Path
		}
		names = append(names, name)
	}
	if near := nearest(typed, names); typed != "" && near != "" {
		return []string{"did you mean " + near + "?"}
	}
	if len(names) == 0 {
		return []string{"the description has no operation that a contract can have"}
	}
	if len(names) > most {
		return []string{fmt.Sprintf("it has %d operations, among them %s", len(names), strings.Join(names[:most], ", "))}
	}
	return []string{"it has " + strings.Join(names, ", ")}
}

// tellNew prints the suggested target as a site file, the rest as its comments:
// what is printed can be kept as targets.yaml.
func (a *app) tellNew(o *scaffold.Outline, w scaffold.Written, asJSON bool) error {
	if asJSON {
		return a.printJSON(map[string]any{
			"folder": w.Dir, "files": w.Files, "decisions": orEmpty(o.Decisions), "left_out": orEmpty(o.LeftOut), "site": w.Site,
		})
	}
	say := func(format string, args ...any) { fmt.Fprintln(a.out, "# "+printable(fmt.Sprintf(format, args...))) }
	say("%s is written: contract.yaml and %s.", w.Dir, plural(len(w.Files)-1, "fixture", "fixtures"))
	say("For you to decide, also at the top of contract.yaml:")
	for i, d := range o.Decisions {
		say("%3d. %s", i+1, d)
	}
	if len(o.LeftOut) > 0 {
		say("Left out, and why:")
		for _, l := range o.LeftOut {
			say("  - %s", l)
		}
	}
	say("The operator's part, for targets.yaml:")
	_, err := io.WriteString(a.out, w.Site)
	return err
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// readAnswer reads one line of a person. An interrupt ends the wait; the reader
// then stays blocked, and the program ends.
func readAnswer(ctx context.Context, next func() (string, error)) (string, error) {
	type line struct {
		s   string
		err error
	}
	got := make(chan line, 1)
	go func() {
		s, err := next()
		got <- line{s, err}
	}()
	select {
	case <-ctx.Done():
		return "", &failure{exit: exitInterrupted, msg: "interrupted", cause: errInterrupted}
	case l := <-got:
		if l.err != nil && l.s == "" {
			return "", usage("nothing was typed; nothing was done", "the terminal was closed or sent an end of file")
		}
		return strings.TrimSpace(l.s), nil
	}
}
