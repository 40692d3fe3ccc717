package executor

import (
	"net/http"
	"time"

	"chatelaine/internal/fault"
)

// The phases of an attempt, in order. Exchange.Phase names the last one
// entered.
const (
	PhasePrepare = "prepare" // checking our own request; nothing was opened
	PhaseResolve = "resolve" // looking up the host name, checking addresses
	PhaseConnect = "connect" // TCP
	PhaseTLS     = "tls"     // handshake and verification
	PhaseAttach  = "attach"  // the credential is compared and attached
	PhaseWrite   = "write"   // the request is written
	PhaseHeader  = "header"  // waiting for and reading the header block
	PhaseBody    = "body"    // reading body and trailers
	PhaseDone    = "done"    // a whole answer came
)

// Exchange is what happened in one attempt. Header, Trailer and Body are the
// remote's bytes: hostile until package validate has proved them.
type Exchange struct {
	Started, Ended time.Time
	// Wrote is false only if provably no byte of the request was handed to
	// the operating system.
	Wrote bool
	// Answered says that a final status line and header block came; the
	// body may still be missing or cut.
	Answered bool
	Status   int
	Header   http.Header
	Trailer  http.Header
	// Names are the header names as the remote wrote them, one a line: those of
	// Header have other capitals. Of HTTP/2, which has small letters only, nil.
	Names []byte
	Body  []byte // at most MaxBody bytes, also beside an error
	// Err is nil if and only if a whole answer came within the limits.
	Err      *fault.Error
	Phase    string
	TooLarge bool // the body went on beyond MaxBody
	// Connection is empty until one was made.
	Connection Connection
	Reused     bool // an idle connection was used
	Writes     int  // times that a request was begun on the wire: 0 or 1

	rule string // transport rule that refused the answer, "" for none
	why  string // the same in a sentence of ours
}

// LayerTransport is the layer of every refusal made here.
const LayerTransport = "transport"

// The transport rules that refuse an answer.
const (
	RuleBodyTooLarge    = "body-too-large"
	RuleHeaderTooLarge  = "header-too-large"
	RuleMalformedHead   = "malformed-head"
	RuleInformational   = "informational-flood"
	RuleSwitch          = "protocol-switch"
	RuleContentEncoding = "content-encoding"
	RuleContentLength   = "content-length"
	RuleTransferCoding  = "transfer-encoding"
	RuleChunk           = "malformed-chunk"
	RuleTrailer         = "malformed-trailer"
	RuleExtraBytes      = "extra-bytes"
	RuleProtocol        = "protocol-error"
)

// Rejected says whether the answer was refused by the transport limits, and by
// which rule. The layer is always "transport".
func (e Exchange) Rejected() (layer, rule string, ok bool) {
	if e.rule == "" {
		return "", "", false
	}
	return LayerTransport, e.rule, true
}

// Why is a sentence of ours for the operator about a refusal by the transport
// limits, "" where there was none. It holds no byte of the remote's.
func (e Exchange) Why() string { return e.why }
