package fault

import "sort"

// statusOwn is the HTTP status of every code that a contract declares itself.
const statusOwn = 409

const (
	invalidAfterChange  = "The answer is not what the contract allows. It was sent and may have taken effect; do not repeat it."
	resolvedDone        = "A person found that it happened; do not repeat it."
	resolvedNot         = "A person found that it did not happen."
	noCallHere          = "There is no call of this id for this agent."
	noRouteHere         = "There is no such route here."
	missingAfterChange  = "It was sent and accepted, and what it should name is not in the answer. It may have taken effect; do not repeat it."
	endUnread           = "It was sent and accepted; how it ended could not be read. It may have taken effect; do not repeat it."
	didNotHappen        = "It was looked up: it did not take effect."
	internalAfterChange = "The daemon failed after the request was sent. It may have taken effect; do not repeat it."
)

type entry struct {
	status    int
	message   string
	retryable bool
	fate      Fate
}

// catalogue is the one table of docs/http-api.md ("Envelope"). A test holds
// the two together.
var catalogue = map[Code]entry{
	InvalidArgument:       {400, "The input does not fit the contract of this action.", false, NotConsumed},
	UnknownAction:         {404, "There is no such action for this caller.", false, NotConsumed},
	SessionRequired:       {401, "An authorised session is needed; open one and show its pairing code to the operator.", false, NotConsumed},
	SessionPending:        {403, "The operator has not decided about this session yet.", true, NotConsumed},
	SessionRevoked:        {403, "This session was revoked or has ended; open a new one.", false, NotConsumed},
	ApprovalRequired:      {202, "A person must approve this; ask again with the same request id.", true, Waiting},
	ApprovalDenied:        {403, "A person said no.", false, Final},
	ApprovalExpired:       {403, "Nobody approved this in time; nothing was sent.", true, NotConsumed},
	Cancelled:             {409, "The caller withdrew this before it was sent.", false, Final},
	PlanRequired:          {409, "This action goes through a plan: prepare it, then confirm it.", false, NotConsumed},
	PlanExpired:           {409, "The plan has lapsed; prepare a new one.", true, NotConsumed},
	PlanStale:             {409, "What was shown has changed since; nothing was sent.", true, NotConsumed},
	InProgress:            {202, "This is still running; ask again with the same request id.", true, Running},
	DuplicateRequest:      {409, "This request id was used for another input, or is too old to answer.", false, Final},
	VaultLocked:           {423, "The vault is locked; the operator must unlock it.", true, NotConsumed},
	IdentityUnavailable:   {503, "The credential for this action is not available.", false, NotConsumed},
	TargetNotAllowed:      {403, "The target of this action is not allowed.", false, NotConsumed},
	NotFound:              {404, "The remote object is not there.", false, Final},
	RemoteUnauthenticated: {502, "The remote system refused our credential.", false, Final},
	RemoteForbidden:       {502, "Our account on the remote system may not do this.", false, Final},
	RemoteRateLimited:     {429, "The remote system asks to slow down; nothing was done.", true, Rearmed},
	RemoteCommandMissing:  {502, "The command is not installed on the remote host.", false, Final},
	UpstreamUnavailable:   {503, "The remote system could not be reached; nothing happened.", true, Rearmed},
	OutcomeUnknown:        {504, "It may or may not have happened; do not repeat it.", false, Unresolved},
	InvalidResponse:       {502, "The answer is not what the contract allows.", false, Final},
	AuditUnavailable:      {503, "The record cannot be written, so nothing was done.", true, NotConsumed},
	Overloaded:            {503, "Too many calls at once; try again.", true, NotConsumed},
	Internal:              {500, "The daemon failed.", false, Final},
}

// Known says whether code belongs to the API's closed set.
func Known(code Code) bool {
	_, ok := catalogue[code]
	return ok
}

// Codes returns the API's codes in alphabetical order.
func Codes() []Code {
	out := make([]Code, 0, len(catalogue))
	for c := range catalogue {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}
