package main

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/client"
	"chatelaine/internal/fault"
	"chatelaine/internal/validate"
)

func (a *app) explainCmd() *cobra.Command {
	var asJSON bool
	var input string
	cmd := &cobra.Command{
		Use:   "explain ACTION [KEY=VALUE…]",
		Short: "Say what would become of a call, without making it",
		Long: `Run the daemon's own line of a call up to its claim and name the first thing that
would stop it. Nothing is claimed, asked or sent. KEY=VALUE is typed by the
contract in the configuration folder; without that file use --json-input. It ends
with the exit code that the stopped call would have, else 0.`,
		Example: "  chatelaine explain deploy_release service=api environment=production version=2.14.3 reason=fix\n  chatelaine explain read_stock --json-input input.json --json",
		Args:    atLeastAction,
		RunE: do(func(cmd *cobra.Command, args []string) error {
			return a.explain(cmd.Context(), args[0], args[1:], input, asJSON)
		}),
	}
	cmd.Flags().StringVar(&input, "json-input", "", "read the whole input from this JSON file, - for standard input")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) explain(ctx context.Context, action string, args []string, file string, asJSON bool) error {
	given, err := a.givenInput(args, callFlags{input: file})
	if err != nil {
		return err
	}
	if given == nil {
		if given, err = a.localInput(action, args); err != nil {
			return err
		}
	}
	return a.withOperator(func(op *client.Operator) error {
		x, err := op.Explain(ctx, action, given)
		if err != nil {
			return err
		}
		if asJSON {
			if err := a.printJSON(x); err != nil {
				return err
			}
		} else {
			a.writeExplanation(x)
		}
		if x.StoppedBy == nil {
			return nil
		}
		return &failure{exit: exitOf(fault.Code(x.StoppedBy.Code), false, false),
			msg: fmt.Sprintf("the call would stop at %s: %s", x.StoppedBy.Step, x.StoppedBy.Reason)}
	})
}

// localInput types the arguments by the contract file, since an operator has no
// agent's session to ask the daemon for the published schema.
func (a *app) localInput(action string, args []string) (jsontext.Value, error) {
	if len(args) == 0 {
		return jsontext.Value("{}"), nil
	}
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	if action != filepath.Base(action) {
		return nil, usage(fmt.Sprintf("%q is no action's name", action))
	}
	dir := filepath.Join(p.Contracts(), action)
	contract, problems := actions.LoadContract(dir)
	if len(problems) > 0 || contract == nil {
		return nil, usage(fmt.Sprintf("cannot type KEY=VALUE: there is no readable contract in %s", dir),
			"name the configuration folder with --config, or give the input with --json-input FILE", "see chatelaine contract lint")
	}
	s, err := parseSchema(validate.Canonical(contract.InputSchema().Doc()))
	if err != nil {
		return nil, err
	}
	return buildInput(action, s, args)
}

func (a *app) writeExplanation(x client.Explanation) {
	var rows []row
	for _, s := range x.Steps {
		mark := cc(good, "ok")
		if !s.OK {
			mark = cc(bad, "stop")
		}
		rows = append(rows, row{mark, c(s.Step), c(s.Detail)})
	}
	writeTable(a.out, a.colour, rows, "")
	would := map[string]string{
		"send": "it would be sent",
		"ask":  "a person would be asked first",
	}[x.Would]
	if would == "" {
		return
	}
	fmt.Fprintln(a.out, would)
	if x.Sentence != "" {
		fmt.Fprintf(a.out, "  %s\n  on %s as %s\n", printable(x.Sentence), printable(dash(x.Target)), printable(dash(x.Identity)))
	}
}
