package client

import (
	"encoding/json/jsontext"
	"time"
)

// Operations that need a proof, as the daemon names them.
const (
	OpAuthorize   = "session.authorize"
	OpCallResolve = "call.resolve"
	OpReload      = "reload"
	OpRead        = "read"
)

// Params are the parameters that a challenge covers. Only those of the request's
// own body belong here, without its proof and its secret.
type Params map[string]any

// ResolveParams are those of call.resolve.
func ResolveParams(happened bool) Params { return Params{"happened": happened} }

// Status is the daemon at one glance.
type Status struct {
	Version   string          `json:"version"`
	Mode      string          `json:"mode"`
	DaemonID  string          `json:"daemon_id"`
	StartedAt time.Time       `json:"started_at"`
	Vault     VaultStatus     `json:"vault"`
	Contracts ContractsStatus `json:"contracts"`
	Record    RecordStatus    `json:"record"`
	// Identities tells which identities a person should look at.
	Identities struct {
		Problems []string `json:"problems"`
	} `json:"identities"`
	Approvals struct {
		Open int `json:"open"`
	} `json:"approvals"`
	Sessions struct {
		Pending    int `json:"pending"`
		Authorised int `json:"authorised"`
	} `json:"sessions"`
	Calls struct {
		Running    int `json:"running"`
		Unresolved int `json:"unresolved"`
		// Damaged names entries of the ledger that cannot be read.
		Damaged []string `json:"damaged"`
	} `json:"calls"`
	Listeners []Listener `json:"listeners"`
	Process   Process    `json:"process"`
}

// Process is what runs, where, and for whom. The zero value is of a daemon that
// does not tell.
type Process struct {
	PID            int      `json:"pid"`
	UID            int      `json:"uid"`
	Program        string   `json:"program"`
	Config         string   `json:"config"`
	State          string   `json:"state"`
	Runtime        string   `json:"runtime"`
	GenerationFile string   `json:"generation_file,omitzero"`
	Programs       []string `json:"programs"`
	Operators      []uint32 `json:"operators"`
	AgentUsers     []uint32 `json:"agent_users"`
	AgentGroups    []int    `json:"agent_groups"`
	Proofs         []string `json:"proofs"`
	Ignored        []string `json:"ignored_variables"`
}

// VaultStatus is the vault's state.
type VaultStatus struct {
	State      string    `json:"state"`
	Reason     string    `json:"reason,omitzero"`
	Since      time.Time `json:"since"`
	Backend    string    `json:"backend"`
	Rollback   string    `json:"rollback"`
	Identities int       `json:"identities"`
	AutoLock   string    `json:"auto_lock,omitzero"` // when it locks by itself
	Unattended []Slot    `json:"unattended"`         // what opens it without a person
	Sources    []Source  `json:"sources"`            // where else secrets lie
}

// ContractsStatus is the loaded set.
type ContractsStatus struct {
	Loaded   int      `json:"loaded"`
	Digest   string   `json:"digest"`
	Problems []string `json:"problems"`
}

// RecordStatus is the audit record's state.
type RecordStatus struct {
	State   string `json:"state"` // writing or latched
	NextSeq uint64 `json:"next_seq"`
	Epoch   uint64 `json:"epoch"`
	Warning string `json:"warning,omitzero"`
}

// Listener is one place where the daemon listens.
type Listener struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	State   string `json:"state"`
}

// CardLine is one shown value of a card.
type CardLine struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Card is one decision that a person is asked for.
type Card struct {
	ID          string     `json:"id"`
	State       string     `json:"state"` // open, approved, denied, expired, withdrawn, spent
	Sentence    string     `json:"sentence"`
	Lines       []CardLine `json:"lines"`
	DaemonLine  string     `json:"daemon_line"`
	RequestedBy string     `json:"requested_by"`
	Action      string     `json:"action"`
	RequestID   string     `json:"request_id"`
	SessionID   string     `json:"session_id"`
	OpenedAt    time.Time  `json:"opened_at"`
	ExpiresAt   time.Time  `json:"expires_at"`
	Exceptions  []string   `json:"exceptions"`
}

// Permit is one thing that a session would be allowed without further asking.
type Permit struct {
	Action   string   `json:"action"`
	Sentence string   `json:"sentence"`
	Target   string   `json:"target"`
	Identity string   `json:"identity"`
	Lookups  []string `json:"lookups,omitempty"` // reads that would be sent before the plan is made
}

// Session is one agent run, as the operator sees it.
type Session struct {
	ID          string    `json:"session_id"`
	Name        string    `json:"name"`
	State       string    `json:"state"`
	UID         uint32    `json:"uid"`
	Listener    string    `json:"listener"`
	Process     string    `json:"process"`
	PairingCode string    `json:"pairing_code"`
	OpenedAt    time.Time `json:"opened_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	Permits     []Permit  `json:"permits"`
	Conflict    bool      `json:"conflict"`
}

// CallInfo is one call of the ledger.
type CallInfo struct {
	RequestID  string     `json:"request_id"`
	Action     string     `json:"action"`
	Agent      string     `json:"agent"`
	UID        uint32     `json:"uid"`
	State      string     `json:"state"`
	Code       string     `json:"code"`
	Sentence   string     `json:"sentence"`
	ClaimedAt  *time.Time `json:"claimed_at"`
	FinishedAt *time.Time `json:"finished_at"`
}

// CallDetail is one call. Within a read session More holds what the record
// tells besides: what was asked, where it went, why an answer was refused.
type CallDetail struct {
	CallInfo
	More jsontext.Value `json:",embed"`
}

// Rejection is how often one rule refused answers to one action. Version and
// RequestID are those of the newest.
type Rejection struct {
	Action    string    `json:"action"`
	Rule      string    `json:"rule"` // layer/rule
	Count     int       `json:"count"`
	Last      time.Time `json:"last"`
	Version   string    `json:"version"`
	Owner     string    `json:"owner"`
	RequestID string    `json:"request_id"`
}

// ContractInfo is one loaded contract.
type ContractInfo struct {
	Action  string   `json:"action"`
	Version string   `json:"version"`
	Effect  string   `json:"effect"`
	Owner   string   `json:"owner"`
	Summary string   `json:"summary"`
	Targets []string `json:"targets"`
	Digest  string   `json:"digest"`
}

// ContractList is the loaded set.
type ContractList struct {
	Digest    string         `json:"digest"`
	Contracts []ContractInfo `json:"contracts"`
}

// ExplainStep is one step of the straight line.
type ExplainStep struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Explanation says what would become of a call, up to the claim.
type Explanation struct {
	Would     string        `json:"would"` // send, ask or refuse
	Steps     []ExplainStep `json:"steps"`
	StoppedBy *struct {
		Step   string `json:"step"`
		Code   string `json:"code"`
		Reason string `json:"reason"`
	} `json:"stopped_by"`
	Sentence string   `json:"sentence"`
	Target   string   `json:"target"`
	Identity string   `json:"identity"`
	Lookups  []string `json:"lookups,omitempty"` // reads that would be sent before the plan is made
}
