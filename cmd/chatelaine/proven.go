package main

import (
	"context"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
)

// provenRun is one command that needs the operator passphrase. What can be
// refused is refused before a person types.
type provenRun struct {
	operation, subject string
	of                 client.Params
	// look shows what there is, and may still set subject and of; nil: nothing.
	look func(ctx context.Context, op *client.Operator, src *passSource) error
	// read takes what a person gives besides, once the daemon has said that it
	// would do it; nil: nothing.
	read func(ctx context.Context, src *passSource) error
	use  func(op *client.Operator, p client.Proof) error
}

// proveRun asks for the operator passphrase at the terminal or on the descriptor
// fd, and shows before what it covers.
func (a *app) proveRun(cmd *cobra.Command, fd int, r *provenRun) error {
	fd, err := fdGiven(cmd, "proof-fd", fd)
	if err != nil {
		return err
	}
	src, err := passphraseSource("the operator passphrase", "proof-fd", fd)
	if err != nil {
		return err
	}
	defer src.close()
	ctx := cmd.Context()
	return a.withOperator(func(op *client.Operator) error {
		if r.look != nil {
			if err := r.look(ctx, op, src); err != nil {
				return err
			}
		}
		challenge := func() (client.Challenge, error) { return op.Challenge(ctx, r.operation, r.subject, r.of) }
		if r.read != nil {
			if _, err := challenge(); err != nil {
				return err
			}
			if err := r.read(ctx, src); err != nil {
				return err
			}
		}
		return proveWith(ctx, src, operatorPrompt, challenge, func(p client.Proof) error { return r.use(op, p) })
	})
}

// proven is proveRun for an operation with nothing to look at first but what the
// challenge says.
func (a *app) proven(cmd *cobra.Command, fd int, operation, subject string, of client.Params, use func(*client.Operator, client.Proof) error) error {
	return a.proveRun(cmd, fd, &provenRun{operation: operation, subject: subject, of: of, use: use})
}

// descriptors checks the flags that name descriptors: each is one, and no two are
// the same. fds are the flags' values by name.
func descriptors(cmd *cobra.Command, fds map[string]*int) error {
	used := map[int]string{}
	for _, name := range sortedKeys(fds) {
		fd, err := fdGiven(cmd, name, *fds[name])
		if err != nil {
			return err
		}
		if other, twice := used[fd]; twice && fd >= 0 {
			return usage("--"+other+" and --"+name+" cannot be the same descriptor", "give each its own")
		}
		used[fd] = name
	}
	return nil
}
