package client

import (
	"encoding/json/jsontext"
	"errors"
	"time"

	"chatelaine/internal/fault"
)

// Health says that the daemon is up.
type Health struct {
	OK        bool   `json:"ok"`
	Vault     string `json:"vault"` // open or locked
	Contracts int    `json:"contracts"`
}

// Action is one action that the caller may ask for.
type Action struct {
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	Summary      string         `json:"summary"`
	Effect       string         `json:"effect"` // read, change or destroy
	InputSchema  jsontext.Value `json:"input_schema"`
	ResultSchema jsontext.Value `json:"result_schema"`
	AsksPerson   bool           `json:"asks_person"` // every time
}

// NewSession is a session that waits for the operator. The token is told once.
type NewSession struct {
	ID          string    `json:"session_id"`
	Token       string    `json:"token"`
	PairingCode string    `json:"pairing_code"`
	State       string    `json:"state"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// SessionState is the caller's own session.
type SessionState struct {
	ID        string    `json:"session_id"`
	Name      string    `json:"name"`
	State     string    `json:"state"` // pending, authorised
	ExpiresAt time.Time `json:"expires_at"`
}

// CallRequest asks for an action.
type CallRequest struct {
	Input     jsontext.Value `json:"input"`
	RequestID string         `json:"request_id,omitzero"`
	Wait      int            `json:"wait,omitzero"` // seconds, at most MaxWait
}

// DisplayText is untrusted text of the remote system, for a person.
type DisplayText struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
}

// Envelope is the answer to a call: data, or a refusal, never both.
type Envelope struct {
	OK        bool
	Action    string
	RequestID string
	Data      jsontext.Value         // only where OK
	Display   map[string]DisplayText // only where OK and declared
	Err       *Error                 // only where not OK
	Raw       jsontext.Value         // as it came
}

type wireEnvelope struct {
	OK        *bool                  `json:"ok"`
	Action    *string                `json:"action"`
	RequestID *string                `json:"request_id"`
	Data      jsontext.Value         `json:"data"`
	Display   map[string]DisplayText `json:"display"`
	Error     *wireError             `json:"error"`
}

type wireError struct {
	Code       string        `json:"code"`
	Message    string        `json:"message"`
	Retryable  bool          `json:"retryable"`
	RequestID  string        `json:"request_id"`
	RetryAfter float64       `json:"retry_after_seconds"`
	Fields     []fault.Field `json:"fields"`
}

// maxRetryAfter caps what a reply can make a caller wait.
const maxRetryAfter = 24 * time.Hour

func seconds(s float64) time.Duration {
	if s <= 0 {
		return 0
	}
	if s > maxRetryAfter.Seconds() {
		return maxRetryAfter
	}
	return time.Duration(s * float64(time.Second))
}

// parseEnvelope reads one of the two disjoint shapes and nothing else.
func parseEnvelope(b []byte, status int) (Envelope, error) {
	var w wireEnvelope
	if err := decode(b, &w, true); err != nil {
		return Envelope{}, err
	}
	if w.OK == nil || w.Action == nil || w.RequestID == nil {
		return Envelope{}, errors.New("it is no envelope: ok, action or request_id is missing")
	}
	e := Envelope{OK: *w.OK, Action: *w.Action, RequestID: *w.RequestID, Raw: jsontext.Value(b)}
	if *w.OK {
		if w.Data == nil || w.Error != nil {
			return Envelope{}, errors.New("a success must hold data and no error")
		}
		e.Data, e.Display = w.Data, w.Display
		return e, nil
	}
	if w.Error == nil || w.Data != nil || w.Display != nil {
		return Envelope{}, errors.New("a refusal must hold an error and no data")
	}
	if w.Error.Code == "" {
		return Envelope{}, errors.New("the refusal has no code")
	}
	e.Err = &Error{
		Code: fault.Code(w.Error.Code), Message: w.Error.Message, Retryable: w.Error.Retryable,
		RetryAfter: seconds(w.Error.RetryAfter), Fields: w.Error.Fields, RequestID: w.Error.RequestID, Status: status,
	}
	return e, nil
}
