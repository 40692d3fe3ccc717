package main

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"chatelaine/internal/gateway"
)

// alertEvery is how often one rule of one action is told at most: a vendor that
// changed its answers fails every call, and one message is enough to act on.
const alertEvery = time.Minute

// alerter runs the operator's program when an answer is refused, so that the
// contract's owner hears of a remote system that changed.
type alerter struct {
	program *child
	tell    func(line string) bool

	mu   sync.Mutex
	seen map[alertKey]*alertCount // guarded by mu; bounded by loaded actions and our own rules
}

type alertKey struct{ action, layer, rule string }

type alertCount struct {
	told  time.Time // when the program was last started
	since int       // refused answers that it has not been told of
}

// alertLine is what the program reads: one JSON object on one line.
type alertLine struct {
	Action     string `json:"action"`
	Version    string `json:"version"`
	Owner      string `json:"owner"`
	Layer      string `json:"layer"`
	Rule       string `json:"rule"`
	SchemaPath string `json:"schema_path"`
	RequestID  string `json:"request_id"`
	Count      int    `json:"count"` // refused answers since the last alert of this kind, this one included
}

func newAlerter(argv, env []string, log *slog.Logger) *alerter {
	c := newChild("alert", argv, env, log)
	return &alerter{program: c, tell: c.tell, seen: map[alertKey]*alertCount{}}
}

// rejected counts a refused answer and tells of it where it is time to. It does
// not block.
func (a *alerter) rejected(r gateway.Rejected) {
	if !a.program.configured() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := alertKey{r.Action, r.Layer, r.Rule}
	n := a.seen[key]
	if n == nil {
		n = &alertCount{}
		a.seen[key] = n
	}
	n.since++
	now := time.Now()
	if !n.told.IsZero() && now.Sub(n.told) < alertEvery {
		return
	}
	line, err := json.Marshal(alertLine{
		Action: r.Action, Version: r.Version, Owner: r.Owner, Layer: r.Layer, Rule: r.Rule,
		SchemaPath: r.SchemaPath, RequestID: r.RequestID, Count: n.since,
	})
	if err != nil || !a.tell(string(line)) { // strings and a number always encode
		return
	}
	n.told, n.since = now, 0
}
