package gateway

import "sync"

// gate tells those who wait that the vault was locked or unlocked. The zero value
// works.
type gate struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu; closed at the next turn
}

// turned returns a channel that closes at the next lock or unlock. Who takes it
// first and looks at the vault then misses neither.
func (g *gate) turned() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

// turn wakes all who wait.
func (g *gate) turn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch != nil {
		close(g.ch)
		g.ch = nil
	}
}
