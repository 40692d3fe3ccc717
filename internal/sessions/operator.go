package sessions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"chatelaine/internal/fault"
)

// Authorize lets a pending session act. pins (action to digest) are kept with
// it, by names the operator. Another session that holds the name ends. Errors:
// VAULT_LOCKED, ErrNotFound, ErrDecided, ErrEnded, ErrNameTaken,
// AUDIT_UNAVAILABLE when the disk refuses; the session is then still pending.
func (r *Registry) Authorize(id string, pins map[string]string, by string) error {
	return r.do(func() error {
		s := r.byID[id]
		if s == nil {
			return ErrNotFound
		}
		to, err := next(s.State, EventAuthorise)
		if err != nil {
			return err
		}
		if r.wrap == nil {
			return fault.New(fault.VaultLocked, nil)
		}
		if uid, ok := r.owners[s.Name]; ok && uid != s.UID {
			return fmt.Errorf("session name %s: %w (user %d)", s.Name, ErrNameTaken, uid)
		}
		life := r.clock.Start(r.o.Absolute)
		v := s.Session
		v.State, v.AuthorisedBy, v.Pins = to, by, maps.Clone(pins)
		v.Authorised, v.Expires = life.Began(), life.Ends()
		if err := r.writeLocked(s.digest, v); err != nil {
			return fault.New(fault.AuditUnavailable, fmt.Errorf("authorise the session: %w", err))
		}
		r.owners[s.Name] = s.UID
		if first := r.holderLocked(s.Name); first != nil {
			_ = r.endLocked(first, EventReplace, by, "another session of this name was authorised") // it is authorised
		}
		s.Session, s.life, s.idle = v, life, r.clock.Start(r.o.Idle)
		r.events = append(r.events, event{s: r.viewLocked(s)})
		return nil
	})
}

// Revoke ends a session at once. It works while locked. Errors: ErrNotFound,
// ErrEnded.
func (r *Registry) Revoke(id, by string) error {
	return r.do(func() error {
		s := r.byID[id]
		if s == nil {
			return ErrNotFound
		}
		return r.endLocked(s, EventRevoke, by, "the operator revoked it")
	})
}

// List returns the pending and authorised sessions, oldest first.
func (r *Registry) List() []Session {
	var out []Session
	_ = r.do(func() error {
		for _, s := range r.active {
			out = append(out, r.viewLocked(s))
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Session) int {
		if c := a.Opened.Compare(b.Opened); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// Get returns one session of this run, ended ones too.
func (r *Registry) Get(id string) (Session, bool) {
	var out Session
	var ok bool
	_ = r.do(func() error {
		if s := r.byID[id]; s != nil {
			out, ok = r.viewLocked(s), true
		}
		return nil
	})
	return out, ok
}
