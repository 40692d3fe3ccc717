package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"chatelaine/internal/operatorapi"
)

// Process says which program runs, where, and for whom.
func (d *daemon) Process() operatorapi.Process {
	program, _ := os.Executable() // "" where the system does not tell
	return operatorapi.Process{
		PID: os.Getpid(), UID: os.Getuid(), Program: program,
		Config: d.places.Config, State: d.places.State, Runtime: d.places.Runtime, GenerationFile: d.config.GenerationFile,
		Programs:  programs(d.config),
		Operators: operatorUsers(), AgentUsers: d.agentUsers(), AgentGroups: append([]int{}, d.config.AgentGroups...),
		Proofs: []string{proofPassphrase}, Ignored: append([]string{}, d.ignored...),
	}
}

// programs are the files that the settings have the daemon run: who can change one
// runs as the daemon. An argument that names a file counts too, since a shell
// would run it.
func programs(c Config) []string {
	commands := [][]string{c.Notify, c.Alert}
	for _, s := range c.Sources {
		commands = append(commands, s.Program.Argv)
	}
	out := []string{}
	for _, argv := range commands {
		for i, arg := range argv {
			if found, err := exec.LookPath(arg); i == 0 && err == nil {
				arg = found
			}
			if _, err := os.Stat(arg); err == nil && filepath.IsAbs(arg) {
				out = append(out, arg)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
