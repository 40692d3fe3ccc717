package main

import (
	"context"
	"encoding/json/jsontext"
	"fmt"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) actionsCmd() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "actions [ACTION]",
		Short: "List the actions that this agent may ask for",
		Long: `List the actions that this agent may ask for, or show one of them with its input
and result schema. It needs an authorised session, as a call does.`,
		Example: "  chatelaine actions\n  chatelaine actions deploy_release\n  chatelaine actions --json",
		Args:    between(0, "ACTION"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			r, err := a.agentRun(f)
			if err != nil {
				return err
			}
			defer r.agent.Close()
			if len(args) == 1 {
				return r.showAction(cmd.Context(), args[0])
			}
			return r.listActions(cmd.Context())
		}),
	}
	f.add(cmd, true)
	jsonFlag(cmd, &f.json)
	return cmd
}

func (r *agentRun) listActions(ctx context.Context) error {
	var list []client.Action
	err := r.in(ctx, func() error {
		var err error
		list, err = r.agent.Actions(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if r.json {
		return r.a.printJSON(map[string]any{"actions": list})
	}
	if len(list) == 0 {
		r.a.note("no action is loaded for this agent")
		return nil
	}
	var rows []row
	for _, v := range list {
		rows = append(rows, row{cc(bold, v.Name), c(v.Version), stateCell(v.Effect), c(asks(v)), c(v.Summary)})
	}
	r.a.table([]string{"action", "version", "effect", "asks a person", "summary"}, rows)
	return nil
}

// asks says when a person is asked: a change that is not asked about each time
// is covered by the session's card.
func asks(v client.Action) string {
	switch {
	case v.AsksPerson:
		return "each time"
	case v.Effect == "read":
		return "no"
	}
	return "by session"
}

func (r *agentRun) showAction(ctx context.Context, name string) error {
	var v client.Action
	err := r.in(ctx, func() error {
		var err error
		v, err = r.agent.Action(ctx, name)
		return err
	})
	if err != nil {
		return r.unknownAction(ctx, name, err)
	}
	if r.json {
		return r.a.printJSON(v)
	}
	r.a.pairs([]row{
		{cc(dimmed, "action"), cc(bold, v.Name)}, {cc(dimmed, "version"), c(v.Version)}, {cc(dimmed, "effect"), stateCell(v.Effect)},
		{cc(dimmed, "asks a person"), c(asks(v))}, {cc(dimmed, "summary"), c(v.Summary)},
	})
	for _, s := range []struct {
		title string
		doc   jsontext.Value
	}{{"input", v.InputSchema}, {"result", v.ResultSchema}} {
		doc := s.doc.Clone()
		if doc.Indent(jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  ")) == nil {
			fmt.Fprintf(r.a.out, "%s:\n  %s\n", s.title, printableLines(string(doc)))
		}
	}
	return nil
}
