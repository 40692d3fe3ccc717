package sessions

import (
	"crypto/subtle"
	"regexp"
	"sync"

	"chatelaine/internal/fault"
)

// nameForm is the form of a session's name: what a person reads on the card,
// so no sign that can be mistaken for another.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Request asks for a session. It waits for the operator ten minutes. anchor is
// "self" (also when empty) or "parent". Errors: INVALID_ARGUMENT (the name's
// form, or it belongs to another user), OVERLOADED (too many wait already).
func (r *Registry) Request(c Caller, name, anchor string) (Pending, error) {
	if anchor == "" {
		anchor = "self"
	}
	if err := checkRequest(name, anchor); err != nil {
		return Pending{}, err
	}
	var p Pending
	err := r.do(func() error {
		if uid, ok := r.owners[name]; ok && uid != c.UID {
			return fault.Invalid(ErrNameTaken, fault.Field{Pointer: "/name", Reason: "this name belongs to another user; choose another"})
		}
		if err := r.roomLocked(c.UID); err != nil {
			return err
		}
		token := newToken()
		life := r.clock.Start(r.o.PendingFor)
		s := &session{digest: r.digestToken(token), life: life, Session: Session{
			ID: newID(), Name: name, Anchor: anchor, State: StatePending, UID: c.UID, Listener: c.Listener, Exe: c.Exe,
			PID: c.PID, PairingCode: r.freshCodeLocked(), Opened: life.Began(), Expires: life.Ends(),
		}}
		r.byID[s.ID], r.active[s.ID], r.byToken[s.digest] = s, s, s
		r.events = append(r.events, event{s: r.viewLocked(s)})
		p = Pending{ID: s.ID, Token: token, PairingCode: s.PairingCode, Expires: s.Expires}
		return nil
	})
	return p, err
}

func checkRequest(name, anchor string) error {
	var fields []fault.Field
	if !nameForm.MatchString(name) {
		fields = append(fields, fault.Field{Pointer: "/name", Reason: "must have 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit"})
	}
	if anchor != "self" && anchor != "parent" {
		fields = append(fields, fault.Field{Pointer: "/anchor", Reason: `must be "self" or "parent"`})
	}
	if fields != nil {
		return fault.Invalid(nil, fields...)
	}
	return nil
}

func (r *Registry) roomLocked(uid uint32) error {
	all, own := 0, 0
	for _, s := range r.active {
		if s.State != StatePending {
			continue
		}
		all++
		if s.UID == uid {
			own++
		}
	}
	if own >= r.o.PerUID {
		return fault.Newf(fault.Overloaded, "%d sessions of user %d wait for the operator already", own, uid)
	}
	if all >= r.o.InAll {
		return fault.Newf(fault.Overloaded, "%d sessions wait for the operator already", all)
	}
	return nil
}

// freshCodeLocked makes a pairing code that no other waiting session shows.
func (r *Registry) freshCodeLocked() string {
	for {
		code, used := newPairingCode(), false
		for _, s := range r.active {
			used = used || (s.State == StatePending && s.PairingCode == code)
		}
		if !used {
			return code
		}
	}
}

// Authenticate finds the session of a token. A pending session is returned too:
// see RequireAuthorised. Errors: SESSION_REQUIRED for no token, a wrong one, or
// one that another user presents (that is refused and changes nothing);
// SESSION_REVOKED for a session that ended, lapsed, was revoked or belongs to an
// earlier run of the daemon.
func (r *Registry) Authenticate(token string, c Caller) (Session, error) {
	var out Session
	err := r.do(func() error {
		s, err := r.ofTokenLocked(token, c)
		if err != nil {
			return err
		}
		if s.State == StateAuthorised {
			s.idle = r.clock.Start(r.o.Idle)
		}
		out = r.viewLocked(s)
		return nil
	})
	return out, err
}

func (r *Registry) ofTokenLocked(token string, c Caller) (*session, error) {
	if token == "" {
		return nil, fault.Newf(fault.SessionRequired, "no token")
	}
	d := r.digestToken(token)
	s := r.byToken[d]
	// The map is keyed by a digest under a key nobody outside has, so its timing
	// tells nothing; the comparison that decides is constant in time all the same.
	if s == nil || subtle.ConstantTimeCompare(s.digest[:], d[:]) != 1 {
		if r.earlier[d] {
			return nil, fault.Newf(fault.SessionRevoked, "the session belongs to an earlier run of the daemon")
		}
		return nil, fault.Newf(fault.SessionRequired, "the token is unknown")
	}
	if s.UID != c.UID {
		return nil, fault.Newf(fault.SessionRequired, "the token of session %s of user %d was presented by user %d", s.ID, s.UID, c.UID)
	}
	if s.over() {
		return nil, s.RequireAuthorised()
	}
	return s, nil
}

// End ends the caller's own session. Errors as Authenticate's.
func (r *Registry) End(token string, c Caller) error {
	return r.do(func() error {
		s, err := r.ofTokenLocked(token, c)
		if err != nil {
			return err
		}
		return r.endLocked(s, EventEnd, "agent", "the agent ended it")
	})
}

// Alive says whether a session is still authorised: nil, SESSION_PENDING or
// SESSION_REVOKED. It does not count as use.
func (r *Registry) Alive(id string) error {
	return r.do(func() error {
		s := r.byID[id]
		if s == nil {
			return fault.Newf(fault.SessionRevoked, "the session is not known any more")
		}
		return s.RequireAuthorised()
	})
}

// Hold says that a call of the session waits for a person, which is not idle.
// release ends that, once, and the idle time begins anew.
func (r *Registry) Hold(id string) (release func()) {
	_ = r.do(func() error {
		if s := r.byID[id]; s != nil {
			s.holds++
		}
		return nil
	})
	return sync.OnceFunc(func() {
		_ = r.do(func() error {
			s := r.byID[id]
			if s == nil {
				return nil
			}
			s.holds--
			s.idle = r.clock.Start(r.o.Idle)
			return nil
		})
	})
}

// Pins returns what the operator permitted the session when authorising it:
// action to digest. It is empty for a session that is not authorised.
func (r *Registry) Pins(id string) map[string]string {
	s, ok := r.Get(id)
	if !ok || s.State != StateAuthorised {
		return nil
	}
	return s.Pins
}
