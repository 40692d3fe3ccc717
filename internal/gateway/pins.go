package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"chatelaine/internal/actions"
	"chatelaine/internal/sessions"
)

// pinOf is the digest under which a session's card permits a change, and under
// which an operator accepts an action: contract and targets, whose digests cover
// their identities, hashed under a tag of its own. A contract whose target is gone has no pin, so that nothing
// is covered by accident.
func pinOf(s *actions.Set, c *actions.Contract) (string, bool) {
	h := sha256.New()
	h.Write([]byte("chatelaine/v1 session pin\x00"))
	d := c.Digest()
	h.Write(d[:])
	for _, name := range c.Targets() {
		t, ok := s.Target(name)
		if !ok {
			return "", false
		}
		td := t.Digest()
		h.Write(td[:])
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return pinHex(sum), true
}

func pinHex(b [32]byte) string { return hex.EncodeToString(b[:]) }

// Permit is one line of a session's card: a change that it will allow without
// asking again.
type Permit struct {
	Action   string `json:"action"`
	Sentence string `json:"sentence"`
	Target   string `json:"target"`
	Identity string `json:"identity"`
}

// Permits lists every change that authorising a session allows now, and the
// pins that are kept with it.
func (g *Gateway) Permits() ([]Permit, map[string]string) {
	set := g.Set()
	pins := map[string]string{}
	var out []Permit
	for _, c := range set.Contracts() {
		if c.Effect() == actions.Read || g.isHeld(c.Action()) {
			continue
		}
		var lines []Permit
		for _, name := range c.Targets() {
			t, ok := set.Target(name)
			if !ok || !sessionSuffices(set, c, t) {
				continue
			}
			lines = append(lines, Permit{Action: c.Action(), Sentence: c.SentenceForm(), Target: name, Identity: t.Identity()})
		}
		if pin, ok := pinOf(set, c); ok && len(lines) > 0 {
			pins[c.Action()] = pin
			out = append(out, lines...)
		}
	}
	return out, pins
}

// sessionSuffices says whether the strictest of contract, target and identity
// is content with the session's card.
func sessionSuffices(s *actions.Set, c *actions.Contract, t *actions.Target) bool {
	return askedFor(s, c, t) == actions.AskSession
}

// CallerLabel names who asks, for the card. Where the process is not known the
// card says so.
func CallerLabel(s sessions.Session) string {
	process := "process unknown"
	if s.Exe != "" {
		process = fmt.Sprintf("%s, pid %d", s.Exe, s.PID)
	}
	return fmt.Sprintf("%s (user %d, %s)", s.Name, s.UID, process)
}
