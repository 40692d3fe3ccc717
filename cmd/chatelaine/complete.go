package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

// completeTimeout keeps a shell's completion from hanging on a busy daemon.
const completeTimeout = time.Second

type completer func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeActions offers the contract folders of the configuration; it asks
// nobody.
func (a *app) completeActions(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	p, err := a.places()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	entries, err := os.ReadDir(p.Contracts())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, e := range entries {
		if isFile(filepath.Join(p.Contracts(), e.Name(), "contract.yaml")) {
			out = append(out, e.Name())
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeFrom offers what the operator socket lists for the first argument.
func (a *app) completeFrom(list func(context.Context, *client.Operator) []cobra.Completion) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		op, err := a.operator()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer op.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeTimeout)
		defer cancel()
		return list(ctx, op), cobra.ShellCompDirectiveNoFileComp
	}
}

func openCards(ctx context.Context, op *client.Operator) []cobra.Completion {
	cards, _ := op.Approvals(ctx) // no list, no offer
	var out []cobra.Completion
	for _, x := range cards {
		if x.State == cardOpen {
			out = append(out, cobra.CompletionWithDesc(printable(x.RequestID), printable(x.Sentence)))
		}
	}
	return out
}

func liveSessions(ctx context.Context, op *client.Operator) []cobra.Completion {
	list, _ := op.Sessions(ctx)
	var out []cobra.Completion
	for _, s := range list {
		out = append(out, cobra.CompletionWithDesc(printable(s.ID), printable(s.Name+", "+s.State)))
	}
	return out
}

func identityNames(ctx context.Context, op *client.Operator) []cobra.Completion {
	list, _ := op.Identities(ctx)
	var out []cobra.Completion
	for _, x := range list {
		out = append(out, cobra.CompletionWithDesc(printable(x.Name), printable(x.State)))
	}
	return out
}

func slotIDs(ctx context.Context, op *client.Operator) []cobra.Completion {
	list, _ := op.Slots(ctx)
	var out []cobra.Completion
	for _, s := range list {
		out = append(out, cobra.CompletionWithDesc(printable(shortID(s)), printable(strings.TrimSpace(s.Kind+" "+s.Label))))
	}
	return out
}

// completions says which command's argument is completed by what.
func (a *app) completions(root *cobra.Command) {
	for path, f := range map[string]completer{
		"call": a.completeActions, "explain": a.completeActions, "actions": a.completeActions,
		"contract lint": a.completeActions, "contract test": a.completeActions, "contract record": a.completeActions, "contract show": a.completeActions,
		"approve": a.completeFrom(openCards), "deny": a.completeFrom(openCards), "approvals": a.completeFrom(openCards),
		"session authorize": a.completeFrom(liveSessions), "session revoke": a.completeFrom(liveSessions),
		"vault remove-slot": a.completeFrom(slotIDs),
		"identity put":      a.completeFrom(identityNames), "identity remove": a.completeFrom(identityNames), "identity rebind": a.completeFrom(identityNames),
		"identity show": a.completeFrom(identityNames), "identity check": a.completeFrom(identityNames), "identity rotate": a.completeFrom(identityNames),
	} {
		if cmd, _, err := root.Find(strings.Fields(path)); err == nil {
			cmd.ValidArgsFunction = f
		}
	}
}
