package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) identityCheckCmd() *cobra.Command {
	var asJSON, local bool
	var action string
	fd := -1
	cmd := &cobra.Command{
		Use: "check NAME", Short: "Prove that a secret works, with a read",
		Long: `Say whether a secret is stored for an identity and fits every target that uses it,
and then prove it: perform the read that targets.yaml names as the identity's check
(check: ACTION), or that --action names, and show what it found, such as the account
and its scopes. The secret itself is never shown. The read goes through everything
that an agent's call does but the question to a person, and is in the record. It
sends with the credential, so it needs the operator passphrase. With --local, or
where no action is named, nothing is sent and nothing is asked. Exit code 1 where
the identity could not be used.`,
		Example: "  chatelaine identity check deploy-test-bot\n  chatelaine identity check deploy-test-bot --action who_am_i --proof-fd 3 3<passphrase-file\n  chatelaine identity check deploy-test-bot --local",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if local && (action != "" || cmd.Flags().Changed("proof-fd")) {
				return usage("--local sends nothing, so it takes neither --action nor --proof-fd")
			}
			return a.checkIdentity(cmd, args[0], checkFlags{action, local, asJSON, fd})
		}),
	}
	cmd.Flags().StringVar(&action, "action", "", "the action that proves it, where not that of targets.yaml: it reads and takes no input")
	cmd.Flags().BoolVar(&local, "local", false, "only compare what is stored with targets.yaml; nothing is sent")
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

type checkFlags struct {
	action      string
	local, json bool
	fd          int
}

// checked is what the command prints for a program.
type checked struct {
	client.IdentityCheck `json:",embed"`
	Proof                *client.IdentityProof `json:"proof,omitempty"`
}

func (a *app) checkIdentity(cmd *cobra.Command, name string, f checkFlags) error {
	var d client.IdentityDetail
	var x client.IdentityCheck
	err := a.withOperator(func(op *client.Operator) (err error) {
		if d, err = findIdentity(cmd.Context(), op, name); err != nil {
			return err
		}
		x, err = op.CheckIdentity(cmd.Context(), name)
		return err
	})
	if err != nil {
		return err
	}
	out := checked{IdentityCheck: x}
	if f.action == "" {
		f.action = x.Action
	}
	if !x.Usable || f.local || f.action == "" {
		return a.checkedLocally(out, d.Kind, f)
	}
	if !f.json {
		a.checkTable(x)
	}
	return a.proven(cmd, f.fd, client.OpRead, "", nil, func(op *client.Operator, p client.Proof) error {
		if err := op.OpenRead(cmd.Context(), p); err != nil {
			return err
		}
		return a.prove(cmd.Context(), op, out, f)
	})
}

// checkedLocally is a check for which nothing was sent.
func (a *app) checkedLocally(out checked, kind string, f checkFlags) error {
	if f.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.checkTable(out.IdentityCheck)
	}
	name := out.Name
	switch {
	case out.Usable && f.action == "" && !f.json:
		a.note("%s", printable(unsent(name, kind)))
		return nil
	case out.Usable:
		return nil
	case !out.Stored:
		return refused("identity "+name+" has no secret in the vault", "chatelaine identity put "+name)
	case out.Suspended:
		return refused("identity "+name+" is suspended: answers repeated its secret", "look at `chatelaine calls list`, replace the secret at its issuer, then: chatelaine identity rotate "+name)
	}
	return refused("identity "+name+" is bound to another destination", "see chatelaine identity show "+name+"; if the new one is meant: chatelaine identity rebind "+name)
}

// unsent says why nothing was sent, and what would prove the secret.
func unsent(name, kind string) string {
	switch {
	case kind == "none":
		return "nothing was sent: an identity of kind none has no secret to prove"
	case strings.HasPrefix(kind, "ssh_"):
		return "nothing was sent: whether the host takes the secret is not known; this release performs no action over SSH that could prove it"
	}
	return "nothing was sent: whether the remote system takes the secret is not known; `check: ACTION` under " + name + " in targets.yaml names a read that proves it"
}

func (a *app) checkTable(x client.IdentityCheck) {
	var rows []row
	for _, t := range x.Targets {
		word := "bound"
		if !t.Bound {
			word = "not bound"
		}
		rows = append(rows, row{cc(bold, t.Target), stateCell(word), c(dash(t.Detail))})
	}
	a.table([]string{"target", "secret", "reason"}, rows)
}

func (a *app) prove(ctx context.Context, op *client.Operator, out checked, f checkFlags) error {
	p, err := op.ProveIdentity(ctx, out.Name, f.action)
	if err != nil {
		return err
	}
	if out.Proof = &p; f.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if !p.OK {
		return notProved(out.Name, &p, "")
	}
	if f.json {
		return nil
	}
	fmt.Fprintf(a.out, "%s: proved by %s on %s\n", printable(out.Name), printable(p.Action), printable(p.Target))
	return a.proofRows(p)
}

// proofRows is the contract's closed result, such as the account, and below it
// what the remote system says in its own words, such as scopes.
func (a *app) proofRows(p client.IdentityProof) error {
	if len(p.Data) > 0 {
		rows, err := memberRows(p.Data)
		if err != nil {
			return err
		}
		writeTable(a.out, a.colour, rows, "  ")
	}
	a.displayed(p.Display)
	return nil
}
