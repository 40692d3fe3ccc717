package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

func (a *app) sourceCmd() *cobra.Command {
	return group("source", "Places outside the vault where secrets lie",
		`A source is a place outside the vault from which the daemon fetches the secret of
an identity: a secret manager, a program, or the service manager's credentials.
Sources stand under vault.sources in chatelaine.yaml; an identity is put with
chatelaine identity put NAME --from SOURCE:REFERENCE.`,
		"  chatelaine vault source list\n  chatelaine vault source put bao",
		a.sourceListCmd(), a.sourcePutCmd(), a.sourceRemoveCmd())
}

func (a *app) sourceListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the sources and how they answered last",
		Long: `List the sources of chatelaine.yaml: what each is, whether the vault holds what the
daemon logs in with there, when a secret last came, and what was wrong where none
came: absent, locked, unavailable, denied or lying. No secret is shown, and nothing
is asked to find out.`,
		Example: "  chatelaine vault source list\n  chatelaine vault source list --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error {
				list, err := op.Sources(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(map[string]any{"sources": list})
				}
				a.sourceTable(list)
				return nil
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) sourceTable(list []client.Source) {
	if len(list) == 0 {
		a.note("no sources: write vault.sources in chatelaine.yaml and restart the daemon")
		return
	}
	var rows []row
	for _, s := range list {
		rows = append(rows, row{cc(bold, s.Name), c(s.Kind), credentialCell(s.Credential), c(clock(s.LastFetched)), sourceFailure(s), c(s.Place)})
	}
	a.table([]string{"source", "kind", "credential", "last fetch", "last failure", "place"}, rows)
}

func sourceNames(list []client.Source) string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// sourceNote tells a tired person which source wants them.
func (a *app) sourceNote(s client.Source) {
	switch s.Credential {
	case credentialMissing, credentialMoved:
		a.note("source %s: what the daemon logs in with there is %s: chatelaine vault source put %s", printable(s.Name), printable(s.Credential), printable(s.Name))
	}
	if s.Failure != "" {
		a.note("source %s gave no secret at %s (%s): see the log, and chatelaine vault source list", printable(s.Name), clock(s.LastFailed), printable(s.Failure))
	}
}

// The states of a source's credential that keep the daemon from logging in, as the
// daemon names them.
const (
	credentialMissing = "missing"
	credentialMoved   = "bound to another place"
)

// credentialCell marks what keeps the daemon from logging in.
func credentialCell(state string) cell {
	switch state {
	case credentialMissing, credentialMoved:
		return cc(warn, state)
	}
	return c(state)
}

func sourceFailure(s client.Source) cell {
	if s.Failure == "" {
		return c("-")
	}
	return cc(warn, s.Failure+" at "+clock(s.LastFailed))
}

func (a *app) sourcePutCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use: "put NAME", Short: "Store what the daemon logs in with at a source",
		Long: `Store what the daemon logs in with at a source of kind kv: the secret id of its
AppRole, or a token. It is bound to the address, the CA and the role that
chatelaine.yaml names now, and is sent nowhere else. It is read from the terminal
without echo, twice, or from standard input, without one trailing newline. The
operator passphrase comes from the terminal or from --proof-fd.`,
		Example: "  chatelaine vault source put bao\n  bao write -f -field=secret_id auth/approle/role/chatelaine/secret-id | chatelaine vault source put bao --proof-fd 3 3<passphrase-file",
		Args:    secretArgs("put"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			n, err := fdGiven(cmd, "proof-fd", fd)
			if err != nil {
				return err
			}
			if n == 0 {
				return usage("--proof-fd 0 is standard input, which is for the credential", "use 3 or above")
			}
			return a.putSource(cmd, args[0], fd, asJSON)
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) putSource(cmd *cobra.Command, name string, fd int, asJSON bool) error {
	var credential []byte
	defer func() { clear(credential) }()
	r := &provenRun{operation: client.OpPutSource, subject: name}
	r.look = func(ctx context.Context, op *client.Operator, src *passSource) error {
		s, err := findSource(ctx, op, name)
		if err == nil && src.interactive() {
			fmt.Fprintf(src.tty, "what logs in at %s will be bound to %s\n", printable(s.Name), printable(s.Place))
		}
		return err
	}
	r.read = func(ctx context.Context, src *passSource) (err error) {
		credential, err = a.readSecret(ctx, src, secretKind{kind: "source", what: "the secret id of the AppRole, or the token"})
		return err
	}
	r.use = func(op *client.Operator, p client.Proof) error {
		if err := op.PutSource(cmd.Context(), name, credential, p); err != nil {
			return err
		}
		return a.changed(asJSON, "source", name, "stored")
	}
	return a.proveRun(cmd, fd, r)
}

// findSource takes the name of a source, before a person types.
func findSource(ctx context.Context, op *client.Operator, name string) (client.Source, error) {
	list, err := op.Sources(ctx)
	if err != nil {
		return client.Source{}, err
	}
	var names []string
	for _, s := range list {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	hints := []string{"see chatelaine vault source list"}
	if near := nearest(name, names); near != "" {
		hints = append([]string{"did you mean " + near + "?"}, hints...)
	}
	return client.Source{}, refused(fmt.Sprintf("there is no source %q in chatelaine.yaml", name), hints...)
}

func (a *app) sourceRemoveCmd() *cobra.Command {
	var asJSON bool
	fd := -1
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove what the daemon logs in with at a source",
		Long: `Remove what the daemon logs in with at a source. Identities whose secrets lie there
work no more. The source itself stays in chatelaine.yaml, and the role or token stays
good at the secret manager until it is revoked there.`,
		Example: "  chatelaine vault source remove bao",
		Args:    exactly("NAME"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			return a.proven(cmd, fd, client.OpDeleteSource, args[0], nil, func(op *client.Operator, p client.Proof) error {
				if err := op.DeleteSource(cmd.Context(), args[0], p); err != nil {
					return err
				}
				return a.changed(asJSON, "source", args[0], "removed")
			})
		}),
	}
	proofFlag(cmd, &fd)
	jsonFlag(cmd, &asJSON)
	return cmd
}
