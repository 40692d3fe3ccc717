package main

import (
	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

// proofWord is what the end of a proof means for a tired person, and what to do.
// NAME stands for the identity, ID for the call.
type proofWord struct{ means, next string }

var proofWords = map[fault.Code]proofWord{
	fault.RemoteUnauthenticated: {"the remote system refuses the secret", "get a new one from its issuer, then: chatelaine identity rotate NAME"},
	fault.RemoteForbidden:       {"the remote system knows the secret, and its account may not do this read", "give the account that right at the remote system, or name another action"},
	fault.RemoteRateLimited:     {"the remote system asks to slow down; the secret was neither refused nor proved", "try again in a while"},
	fault.TargetNotAllowed:      {"the secret is bound to another destination", "see chatelaine identity show NAME; if the new one is meant: chatelaine identity rebind NAME"},
	fault.IdentityUnavailable:   {"the secret cannot be had: none is stored, it is suspended, or the keychain or source does not answer", "see chatelaine identity show NAME"},
	fault.UpstreamUnavailable:   {"the remote system could not be reached, or failed; this says nothing about the secret", "try again; see chatelaine audit show ID for the cause"},
	fault.OutcomeUnknown:        {"no whole answer came; this says nothing about the secret", "try again; see chatelaine audit show ID for the cause"},
	fault.InvalidResponse:       {"the answer is not what the contract allows; the secret was neither refused nor proved", "see chatelaine audit show ID; the contract's owner mends it"},
	fault.NotFound:              {"the remote system does not know what the action asks for; many say so to an account without rights", "look at the account's rights, or name another action"},
	fault.VaultLocked:           {"the vault was locked meanwhile", "chatelaine unlock"},
	fault.PlanStale:             {"contract, target or identity changed meanwhile", "look again, and run the command again"},
	fault.Overloaded:            {"too many calls at once", "try again"},
	fault.AuditUnavailable:      {"the record cannot be written, so nothing is sent", "see chatelaine status"},
	fault.InProgress:            {"the read takes longer than this command waits", "see chatelaine calls show ID"},
}

// notProved says in plain words why a proof failed. after is what became of the
// identity, "" where nothing could have.
func notProved(name string, p *client.IdentityProof, after string) error {
	if p == nil {
		return refused("the daemon does not say why " + name + " was not proved")
	}
	w, known := proofWords[p.Code]
	if !known {
		w.means = "the action failed: " + p.Message
	}
	msg := name + " is not proved: " + w.means + " (" + string(p.Code) + ")"
	if after != "" {
		msg += "\n" + after
	}
	var hints []string
	if w.next != "" {
		hints = append(hints, fillIn(w.next, name, p.RequestID))
	}
	if p.Cause != "" {
		hints = append(hints, "cause: "+p.Cause)
	}
	exit := exitRefused
	if code := exitOf(p.Code, false, false); code == exitLater {
		exit = exitLater
	}
	if after != "" {
		exit = exitRefused
	}
	return &failure{exit: exit, msg: msg, hints: hints}
}
