package gateway

import "sync"

// Notice is one thing that changed; the operator's clients fetch the rest.
type Notice struct {
	Kind string `json:"kind"` // card, session, call, vault
	ID   string `json:"id"`
}

// hubBacklog is how many notices a slow listener may be behind before it loses
// some; it then sees a gap only in time, never in state, since notices carry no
// state.
const hubBacklog = 64

// Hub hands notices to every listener that keeps up. The zero value works.
type Hub struct {
	mu   sync.Mutex
	subs map[chan Notice]struct{} // guarded by mu
}

func (h *Hub) publish(kind, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs {
		select {
		case c <- Notice{kind, id}:
		default:
		}
	}
}

// subscribe returns a channel of notices and the function that ends it.
func (h *Hub) subscribe() (<-chan Notice, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[chan Notice]struct{}{}
	}
	c := make(chan Notice, hubBacklog)
	h.subs[c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, c)
	}
}

// Events subscribes to what changes.
func (g *Gateway) Events() (<-chan Notice, func()) { return g.events.subscribe() }

// Publish tells listeners that a card or the vault changed; the rooms that own
// those call it.
func (g *Gateway) Publish(kind, id string) { g.events.publish(kind, id) }
