package operatorapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
	"chatelaine/internal/loopback"
	"chatelaine/internal/sessions"
)

// apiError is a refusal to an operator. Detail is the operator's text: the
// cause, and the way out where there is one.
type apiError struct {
	status     int
	Code       string        `json:"code"`
	Message    string        `json:"message"`
	Detail     string        `json:"detail,omitempty"`
	RetryAfter int           `json:"retry_after_seconds,omitempty"`
	Fields     []fault.Field `json:"fields,omitempty"`
}

func (e *apiError) Error() string { return e.Code + ": " + e.Message + " " + e.Detail }

func notFound(what string) *apiError {
	return &apiError{status: http.StatusNotFound, Code: "NOT_FOUND", Message: "There is nothing of that name.", Detail: what}
}

func invalid(pointer, reason string) *apiError {
	return &apiError{status: http.StatusBadRequest, Code: "INVALID_ARGUMENT", Message: "The request is not well-formed.",
		Detail: reason, Fields: []fault.Field{{Pointer: pointer, Reason: reason}}}
}

func proofRequired() *apiError {
	return &apiError{status: http.StatusForbidden, Code: "PROOF_REQUIRED", Message: "This needs the operator's proof.",
		Detail: "fetch a challenge and send a proof over it"}
}

func needsReadSession() *apiError {
	return &apiError{status: http.StatusForbidden, Code: "PROOF_REQUIRED", Message: "This needs a read session.",
		Detail: "open one on this connection with POST /v1/reads and a proof"}
}

// TooSoon is met by the error of a proof or an unlock that came too quickly.
type TooSoon interface{ Wait() time.Duration }

// Refused is met by the error of a wrong proof or passphrase.
type Refused interface{ ProofRefused() bool }

// Unusable is met by the error of a vault that cannot be opened by anybody: it is
// not there, damaged, older than it should be, or readable by others.
type Unusable interface{ VaultUnusable() bool }

// translate is the one table from our errors to an operator's.
func translate(err error) *apiError {
	var own *apiError
	var soon TooSoon
	var refused Refused
	var coded *fault.Error
	var unusable Unusable
	var conflict Conflict
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &soon):
		return &apiError{status: http.StatusTooManyRequests, Code: "PROOF_TOO_SOON", Message: "Too many tries; wait a little.",
			RetryAfter: int(math.Ceil(soon.Wait().Seconds()))}
	case errors.As(err, &refused) && refused.ProofRefused():
		return &apiError{status: http.StatusForbidden, Code: "PROOF_REFUSED", Message: "The passphrase is wrong."}
	case errors.As(err, &unusable) && unusable.VaultUnusable():
		return &apiError{status: http.StatusConflict, Code: "VAULT_UNUSABLE", Message: "The vault cannot be opened as it is.", Detail: err.Error()}
	case errors.As(err, &conflict):
		code, sentence := conflict.Conflict()
		return &apiError{status: http.StatusConflict, Code: code, Message: sentence, Detail: err.Error()}
	case errors.Is(err, approvals.ErrNotFound), errors.Is(err, gateway.ErrNoCall), errors.Is(err, sessions.ErrNotFound):
		return notFound(err.Error())
	case errors.Is(err, approvals.ErrDecided):
		return &apiError{status: http.StatusConflict, Code: "ALREADY_DECIDED", Message: "This card was decided or closed before."}
	case errors.Is(err, sessions.ErrDecided), errors.Is(err, sessions.ErrEnded):
		return &apiError{status: http.StatusConflict, Code: "ALREADY_DECIDED", Message: "This session was decided or has ended before.", Detail: err.Error()}
	case errors.Is(err, sessions.ErrNameTaken):
		return &apiError{status: http.StatusConflict, Code: "NAME_TAKEN", Message: "The session's name belongs to another user.", Detail: err.Error()}
	case errors.Is(err, approvals.ErrNewChallenge):
		return &apiError{status: http.StatusConflict, Code: "CHALLENGE_EXPIRED", Message: "The challenge was used, has lapsed or covers something else.", Detail: err.Error()}
	case errors.Is(err, gateway.ErrNotUnresolved):
		return &apiError{status: http.StatusConflict, Code: "NOT_UNRESOLVED", Message: "There is nothing to resolve.", Detail: err.Error()}
	case errors.As(err, &coded):
		return &apiError{status: coded.Status(), Code: string(coded.Code()), Message: coded.Message(), Detail: coded.Error(), Fields: coded.Fields()}
	}
	return &apiError{status: http.StatusInternalServerError, Code: string(fault.Internal), Message: "The daemon failed.", Detail: err.Error()}
}

func writeError(w http.ResponseWriter, e *apiError) {
	b, err := json.Marshal(map[string]any{"error": e})
	if err != nil {
		http.Error(w, "internal", http.StatusInternalServerError)
		return
	}
	loopback.WriteJSON(w, e.status, b)
}

// Refuse writes a refusal of the guard in this listener's shape.
func Refuse(w http.ResponseWriter, _ *http.Request, status int, why string) {
	writeError(w, &apiError{status: status, Code: "REFUSED", Message: "The request was refused at the door.", Detail: why})
}
