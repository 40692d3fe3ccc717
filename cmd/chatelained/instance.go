package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/durable"
)

// instance ties a state folder to one machine: a copy or a restored backup must
// not go on as if it were the original.
type instance struct {
	ID      string `json:"id"`
	Machine string `json:"machine"`
}

const instanceName = "instance"

func newInstance() instance {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return instance{ID: "dmn_" + hex.EncodeToString(b[:]), Machine: machineID()}
}

// machineID is the machine's own id (machine-id(5)), "" where there is none.
func machineID() string {
	for _, p := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if b, err := os.ReadFile(p); err == nil {
			if id := strings.TrimSpace(string(b)); id != "" {
				return id
			}
		}
	}
	return ""
}

func (i instance) write(state string) error {
	b, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(state, instanceName), append(b, '\n'), 0o600)
}

func readInstance(state string) (instance, error) {
	var i instance
	b, err := os.ReadFile(filepath.Join(state, instanceName))
	if errors.Is(err, fs.ErrNotExist) {
		return i, fmt.Errorf("no state in %s: run `chatelained init` first", state)
	}
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(b, &i); err != nil || i.ID == "" {
		return i, fmt.Errorf("%s is damaged; put it back from a backup", filepath.Join(state, instanceName))
	}
	return i, nil
}

// checkMachine refuses a state folder that came from elsewhere.
func (i instance) checkMachine(state string) error {
	if m := machineID(); i.Machine != m {
		return fmt.Errorf("the state in %s belongs to another machine (a copy, a restored backup or a snapshot?): run `chatelained adopt` if this machine shall go on with it; calls that were under way stay unresolved", state)
	}
	return nil
}

func adoptCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "adopt", Short: "Go on with a state folder that came from another machine",
		Long: "Take over a state folder that was copied or restored. Sessions and cards end,\n" +
			"the record begins a new epoch, and calls that were armed stay unresolved until\n" +
			"a person resolves them. Make sure that the other daemon does not run any more.",
		Example: "  chatelained adopt", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pl, err := p.places()
			if err != nil {
				return err
			}
			if _, err := readInstance(pl.State); err != nil {
				return usageError{err}
			}
			lock, err := durable.LockDir(pl.State, holder("adopt"))
			if err != nil {
				return err
			}
			defer lock.Unlock()
			i, err := readInstance(pl.State)
			if err != nil {
				return usageError{err}
			}
			i.Machine = machineID()
			if err := i.write(pl.State); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "chatelained: adopted; start the daemon with `chatelained serve`")
			return nil
		},
	}
}

// holder says who holds the lock of the state folder.
func holder(what string) string { return fmt.Sprintf("chatelained %s, pid %d", what, os.Getpid()) }

// vaultPath and the rest are the files of a state folder.
func vaultPath(pl client.Places) string      { return filepath.Join(pl.State, "vault") }
func auditPath(pl client.Places) string      { return pl.Record() }
func ledgerPath(pl client.Places) string     { return filepath.Join(pl.State, "ledger.db") }
func recipientsPath(pl client.Places) string { return filepath.Join(pl.State, "recipients") }
func auditKeyPath(pl client.Places) string   { return filepath.Join(pl.State, "audit-key.age") }
func metricsSocket(pl client.Places) string  { return filepath.Join(pl.Runtime, "metrics.sock") }
