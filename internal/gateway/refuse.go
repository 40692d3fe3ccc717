package gateway

import (
	"regexp"
	"sync"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/sessions"
)

// Refusals before an authorised session are summed up, one record for each uid
// and code a minute; in a session each is recorded, up to an hourly number, then
// summed. Otherwise a loop of bad calls could fill the record.
const (
	refusalWindow         = time.Minute
	refusalsPerSessionMax = 600
	refusalSessionWindow  = time.Hour
)

// refuse is the one exit of a call that was not claimed: counted, recorded,
// answered from our own catalogue.
func (g *Gateway) refuse(a Ask, c claimed, err error) Answer {
	f := fault.From(err)
	g.metrics.refused.WithLabelValues(string(f.Code())).Inc()
	c.ask = a
	if c.contract == nil {
		// The caller's word for an action is not a name of ours: it goes
		// neither into the answer nor into the record.
		c.ask.Action = ""
	}
	g.recordRefusal(a, c, f)
	id := g.readableID(a.RequestID)
	g.logger.Info("call refused", "request_id", id, "action", c.ask.Action, "agent", c.session.Name, "uid", a.Peer.UID, "code", f.Code(), "cause", f.Error())
	return answer(g.envelopeError(c.contract, id, f), f)
}

// requestIDForm is the form of a caller's request id (docs/http-api.md, "Once").
var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{7,63}$`)

// readableID is the caller's id where it has the form, one of the daemon's
// otherwise (which the caller may then use): nothing else of the caller's is
// repeated.
func (g *Gateway) readableID(id string) string {
	if requestIDForm.MatchString(id) {
		return id
	}
	return g.ledger.NewID()
}

func (g *Gateway) recordRefusal(a Ask, c claimed, f *fault.Error) {
	sum, write := g.refusals.note(a.Peer.UID, authorisedID(c.session), f.Code(), time.Now())
	if !write {
		return
	}
	e := g.denyEvent(c, f)
	e.Detail = map[string]any{"uid": a.Peer.UID, "listener": a.Peer.Listener, "like_it_before": sum}
	g.log.Append(e)
}

// authorisedID is "" for a session that no operator has accepted: anybody can
// ask for one, so that its refusals are summed up like a stranger's.
func authorisedID(s sessions.Session) string {
	if s.RequireAuthorised() != nil {
		return ""
	}
	return s.ID
}

type refusalKey struct {
	uid     uint32
	session string
	code    fault.Code
}

type refusalCount struct {
	since   time.Time
	written int
	unsaid  int
}

// refusals decides which refusals get a record of their own.
type refusals struct {
	mu    sync.Mutex
	count map[refusalKey]*refusalCount // guarded by mu
}

// refusalKeysMax bounds the table; beyond it old windows are forgotten first.
const refusalKeysMax = 4096

// note counts one refusal. It returns how many like it went unwritten before,
// and whether this one is to be written.
func (r *refusals) note(uid uint32, session string, code fault.Code, now time.Time) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[refusalKey]*refusalCount{}
	}
	window, most := refusalWindow, 1
	if session != "" {
		window, most = refusalSessionWindow, refusalsPerSessionMax
	}
	k := refusalKey{uid, session, code}
	c := r.count[k]
	if c == nil || now.Sub(c.since) >= window {
		unsaid := 0
		if c != nil {
			unsaid = c.unsaid
		}
		r.prune(now)
		c = &refusalCount{since: now, unsaid: unsaid}
		r.count[k] = c
	}
	if c.written >= most {
		c.unsaid++
		return 0, false
	}
	c.written++
	unsaid := c.unsaid
	c.unsaid = 0
	return unsaid, true
}

// prune keeps the table bounded: windows that are over go first, then any.
func (r *refusals) prune(now time.Time) {
	if len(r.count) < refusalKeysMax {
		return
	}
	for k, c := range r.count {
		if now.Sub(c.since) >= refusalWindow {
			delete(r.count, k)
		}
	}
	for k := range r.count {
		if len(r.count) < refusalKeysMax {
			return
		}
		delete(r.count, k)
	}
}

// RefuseMalformed is refuse for a call that could not be decoded. The caller is
// asked for first, so that a stranger learns nothing from how a body is refused.
func (g *Gateway) RefuseMalformed(a Ask, err error) Answer {
	var c claimed
	var who error
	if c.identified, who = g.whoCalls(a); who != nil {
		err = who
	} else if set := g.Set(); set != nil {
		c.contract, _ = set.Contract(a.Action)
	}
	return g.refuse(a, c, err)
}
