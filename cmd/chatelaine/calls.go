package main

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) callsCmd() *cobra.Command {
	return group("calls", "Look at calls, and settle those that nobody can tell",
		`Look at what agents asked for. A call that may or may not have happened stays
unresolved until a person has looked at the remote system and says so.`,
		"  chatelaine calls list --unresolved\n  chatelaine calls resolve act_01JABCDEFGH --did-not",
		a.callsListCmd(), a.callsShowCmd(), a.callsResolveCmd())
}

func (a *app) callsListCmd() *cobra.Command {
	var asJSON, unresolved bool
	cmd := &cobra.Command{
		Use: "list", Short: "List calls",
		Long:    "List the calls that the daemon remembers, with their state and code.",
		Example: "  chatelaine calls list\n  chatelaine calls list --unresolved --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error { return a.listCalls(cmd.Context(), op, unresolved, asJSON) })
		}),
	}
	cmd.Flags().BoolVar(&unresolved, "unresolved", false, "only those that may or may not have happened")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) listCalls(ctx context.Context, op *client.Operator, unresolved, asJSON bool) error {
	state := ""
	if unresolved {
		state = "unresolved"
	}
	list, err := op.Calls(ctx, state)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"calls": list})
	}
	if len(list) == 0 {
		a.note("no call")
		return nil
	}
	var rows []row
	for _, x := range list {
		rows = append(rows, row{c(x.RequestID), c(x.Agent), stateCell(x.State), c(dash(codeText(x))), c(clockOf(x.ClaimedAt)), c(clockOf(x.FinishedAt)), cc(bold, callText(x))})
	}
	a.table([]string{"request", "agent", "state", "code", "claimed", "finished", "what"}, rows)
	return nil
}

func callText(x client.CallInfo) string {
	if x.Sentence != "" {
		return x.Sentence
	}
	return x.Action
}

// codeText is the code of a call's end; a success has none of its own.
func codeText(x client.CallInfo) string {
	if x.Code == "" && x.State == "finished" {
		return "OK"
	}
	return x.Code
}

func (a *app) callsShowCmd() *cobra.Command {
	var asJSON, details bool
	fd := -1
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show one call",
		Long: `Show one call. With --details also what was asked, where it went and why an answer
was refused; that is private, so it needs the operator passphrase and is recorded.
The daemon knows the details of the calls of this run only.`,
		Example: "  chatelaine calls show act_01JABCDEFGH\n  chatelaine calls show act_01JABCDEFGH --details",
		Args:    exactly("ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			show := func(op *client.Operator) error { return a.showCall(cmd.Context(), op, args[0], asJSON, details) }
			if !details {
				if cmd.Flags().Changed("proof-fd") {
					return usage("--proof-fd is only for --details")
				}
				return a.withOperator(show)
			}
			return a.proven(cmd, fd, client.OpRead, "", nil, func(op *client.Operator, p client.Proof) error {
				if err := op.OpenRead(cmd.Context(), p); err != nil {
					return err
				}
				return show(op)
			})
		}),
	}
	cmd.Flags().BoolVar(&details, "details", false, "also show input, target and why an answer was refused; asks for the operator passphrase")
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) showCall(ctx context.Context, op *client.Operator, id string, asJSON, details bool) error {
	x, err := op.Call(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(x)
	}
	l := func(label string, value cell) row { return row{cc(dimmed, label), value} }
	rows := []row{
		l("request", c(x.RequestID)), l("action", cc(bold, x.Action)), l("agent", c(x.Agent)), l("state", stateCell(x.State)),
		l("code", c(dash(codeText(x.CallInfo)))), l("sentence", c(dash(x.Sentence))), l("claimed", c(clockOf(x.ClaimedAt))), l("finished", c(clockOf(x.FinishedAt))),
	}
	if details {
		for _, r := range flatRows("", x.More) {
			if r[0].text != "sentence" { // shown already
				rows = append(rows, r)
			}
		}
	}
	a.pairs(rows)
	if details && len(flatRows("", x.More)) == 0 {
		a.note("there are no details: this daemon has not run the call itself")
	}
	if x.State == "reconciling" {
		a.note("whether it took effect is being looked up; a person who knows can say so: chatelaine calls resolve %s --happened or --did-not", printable(x.RequestID))
	}
	if x.State == "unresolved" {
		a.note("it may or may not have happened; look at the remote system, then: chatelaine calls resolve %s --happened or --did-not", printable(x.RequestID))
	}
	return nil
}

// flatRows are the members of an object and of the objects in it, one a row.
func flatRows(prefix string, v jsontext.Value) []row {
	if v.Kind() != '{' {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var out []row
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return out
		}
		key := prefix + name.String()
		val, err := d.ReadValue()
		if err != nil {
			return out
		}
		switch {
		case key == "steps" && val.Kind() == '[':
			out = append(out, stepRows(val)...)
		case prefix == "" && key == "detail":
			out = append(out, flatRows("", val.Clone())...)
		case val.Kind() == '{':
			out = append(out, flatRows(key+".", val.Clone())...)
		default:
			out = append(out, row{cc(dimmed, key), c(compact(val))})
		}
	}
	return out
}

// stepRows are the steps of a call, one a row: what was sent, how often, and how
// the newest send ended.
func stepRows(v jsontext.Value) []row {
	var steps []struct {
		Step     string `json:"step"`
		Sends    int    `json:"sends"`
		Endpoint string `json:"endpoint"`
		Upstream int    `json:"upstream_status"`
		Status   string `json:"status"`
		Rule     string `json:"rule"`
	}
	if err := json.Unmarshal(v, &steps); err != nil {
		return []row{{cc(dimmed, "steps"), c(compact(v))}}
	}
	var out []row
	for _, s := range steps {
		text := s.Endpoint
		if s.Sends > 1 {
			text += fmt.Sprintf(", sent %d times", s.Sends)
		}
		if s.Upstream != 0 {
			text += fmt.Sprintf(": %d", s.Upstream)
		}
		if s.Status != "" {
			text += ", " + s.Status
		}
		if s.Rule != "" {
			text += " (" + s.Rule + ")"
		}
		out = append(out, row{cc(dimmed, "step "+s.Step), c(text)})
	}
	return out
}

func (a *app) callsResolveCmd() *cobra.Command {
	var asJSON, happened, didNot bool
	fd := -1
	cmd := &cobra.Command{
		Use: "resolve ID (--happened | --did-not)", Short: "Say what became of an unresolved call",
		Long: `Say what became of an unresolved call, after looking at the remote system. After
--did-not the agent may ask again and it is sent anew; after --happened it never
is. It needs the operator passphrase and cannot be taken back.`,
		Example: "  chatelaine calls resolve act_01JABCDEFGH --happened\n  chatelaine calls resolve act_01JABCDEFGH --did-not",
		Args:    exactly("ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if happened == didNot {
				return usage("say what you found: --happened or --did-not, one of them")
			}
			return a.proven(cmd, fd, client.OpCallResolve, args[0], client.ResolveParams(happened), func(op *client.Operator, p client.Proof) error {
				if err := op.Resolve(cmd.Context(), args[0], happened, p); err != nil {
					return err
				}
				word := "did not happen"
				if happened {
					word = "happened"
				}
				return a.changed(asJSON, "request_id", args[0], fmt.Sprintf("resolved, %s", word))
			})
		}),
	}
	cmd.Flags().BoolVar(&happened, "happened", false, "the remote system shows that it took effect")
	cmd.Flags().BoolVar(&didNot, "did-not", false, "the remote system shows that it did not")
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}
