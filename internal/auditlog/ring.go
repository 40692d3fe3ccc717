package auditlog

import "sync"

// ring keeps the newest events of this run, so that the journals of today need
// no key. Bodies are not kept.
type ring struct {
	max int

	mu  sync.Mutex // guards the fields below
	evs []Event
	pos int // where the next one goes, once evs is full
}

func (r *ring) add(evs []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ev := range evs {
		ev.Body = nil
		if len(r.evs) < r.max {
			r.evs = append(r.evs, ev)
			continue
		}
		r.evs[r.pos] = ev
		r.pos = (r.pos + 1) % r.max
	}
}

func (r *ring) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(append(make([]Event, 0, len(r.evs)), r.evs[r.pos:]...), r.evs[:r.pos]...)
}
