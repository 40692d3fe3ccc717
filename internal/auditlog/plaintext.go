package auditlog

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The plaintext of a SEALED record is one JSON object. When it has a member
// body_len, a zero byte and that many raw bytes follow. Zero bytes after that
// are padding: this release writes none and reads any number.

// wireEvent is the JSON object of an event. Names are part of the format.
type wireEvent struct {
	EventID   string         `json:"event_id"`
	Type      string         `json:"type"`
	SessionID string         `json:"session_id,omitempty"`
	CallID    string         `json:"call_id,omitempty"`
	IntentSeq uint64         `json:"intent_seq,omitempty"`
	Wall      time.Time      `json:"wall"`
	BootID    string         `json:"boot_id,omitempty"`
	Mono      int64          `json:"mono,omitempty"`
	Actor     string         `json:"actor,omitempty"`
	Target    string         `json:"target,omitempty"`
	Action    string         `json:"action,omitempty"`
	Decision  string         `json:"decision,omitempty"`
	Rule      string         `json:"rule,omitempty"`
	Status    string         `json:"status,omitempty"`
	Detail    map[string]any `json:"detail,omitempty"`
	BodyLen   *int           `json:"body_len,omitempty"`
}

// eventTypes is the closed set of types that Append takes.
var eventTypes = map[string]bool{
	TypeSessionOpen: true, TypeSessionClose: true, TypeIntent: true, TypeAnswer: true, TypeOutcome: true,
	TypeDeny: true, TypeConfig: true, TypeLock: true, TypeHeartbeat: true, TypeReconcile: true,
}

// errPlain says that a record opened but does not hold an event.
var errPlain = errors.New("auditlog: a record opened but holds no event in the known form")

// complete fills what the caller left to the log.
func (ev *Event) complete() {
	if ev.EventID == "" {
		ev.EventID = "evt_" + rand.Text()
	}
	if ev.Wall.IsZero() {
		ev.Wall = time.Now()
	}
	if ev.BootID == "" && ev.Mono == 0 {
		ev.BootID, ev.Mono = bootClock()
	}
	ev.Wall = ev.Wall.UTC().Round(0)
}

// encodeEvent gives the plaintext of an event.
func encodeEvent(ev *Event) ([]byte, error) {
	if !eventTypes[ev.Type] {
		return nil, fmt.Errorf("auditlog: %q is no event type", ev.Type)
	}
	w := wireEvent{
		EventID: ev.EventID, Type: ev.Type, SessionID: ev.SessionID, CallID: ev.CallID, IntentSeq: ev.IntentSeq,
		Wall: ev.Wall, BootID: ev.BootID, Mono: ev.Mono, Actor: ev.Actor, Target: ev.Target, Action: ev.Action,
		Decision: ev.Decision, Rule: ev.Rule, Status: ev.Status, Detail: ev.Detail,
	}
	if ev.Body != nil {
		n := len(ev.Body)
		w.BodyLen = &n
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&w); err != nil {
		// The cause could quote a value of the detail; its type is enough.
		return nil, fmt.Errorf("auditlog: the detail of a %s event is not JSON (%T)", ev.Type, err)
	}
	out.Truncate(out.Len() - 1) // the encoder's line end
	if ev.Body != nil {
		out.WriteByte(0)
		out.Write(ev.Body)
	}
	return out.Bytes(), nil
}

// decodeEvent reads a plaintext back. Members that a later release adds are
// passed over.
func decodeEvent(plain []byte) (Event, error) {
	doc, rest := plain, []byte(nil)
	if i := bytes.IndexByte(plain, 0); i >= 0 {
		doc, rest = plain[:i], plain[i:]
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var w wireEvent
	if err := dec.Decode(&w); err != nil || dec.InputOffset() != int64(len(doc)) {
		return Event{}, errPlain
	}
	ev := Event{
		EventID: w.EventID, Type: w.Type, SessionID: w.SessionID, CallID: w.CallID, IntentSeq: w.IntentSeq,
		Wall: w.Wall, BootID: w.BootID, Mono: w.Mono, Actor: w.Actor, Target: w.Target, Action: w.Action,
		Decision: w.Decision, Rule: w.Rule, Status: w.Status, Detail: w.Detail,
	}
	if w.BodyLen != nil {
		n := *w.BodyLen
		if n < 0 || len(rest) < 1+n {
			return Event{}, errPlain
		}
		ev.Body, rest = append([]byte{}, rest[1:1+n]...), rest[1+n:]
	}
	if !allZero(rest) {
		return Event{}, errPlain
	}
	return ev, nil
}
