package operatorapi

// Process is what `status` tells of the running program, so that an operator's
// own checks need not guess which files, users and listeners are meant. It
// holds paths, numbers and names of variables, never a value of one.
type Process struct {
	PID     int    `json:"pid"`
	UID     int    `json:"uid"`
	Program string `json:"program"` // the file that runs
	Config  string `json:"config"`
	State   string `json:"state"`
	Runtime string `json:"runtime"`
	// GenerationFile is the vault's second counter, where it is a file.
	GenerationFile string `json:"generation_file,omitempty"`
	// Programs are the files that the settings have the daemon run, or hand to what
	// it runs.
	Programs []string `json:"programs"`
	// Operators and the two after it are the users whom the sockets let in.
	Operators   []uint32 `json:"operators"`
	AgentUsers  []uint32 `json:"agent_users"`
	AgentGroups []int    `json:"agent_groups"`
	// Proofs are the kinds that a decision can be proved with.
	Proofs []string `json:"proofs"`
	// Ignored names the variables of the start that could have bent where calls
	// go, and were left out.
	Ignored []string `json:"ignored_variables"`
}
