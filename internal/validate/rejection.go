package validate

import "fmt"

// The layers of a rejection, in the order in which an answer meets them; echo
// is found by whoever holds the credential.
const (
	LayerTransport = "transport"
	LayerParse     = "parse"
	LayerOutcome   = "outcome"
	LayerSchema    = "schema"
	LayerPick      = "pick"
	LayerCheck     = "check"
	LayerResult    = "result"
	LayerEcho      = "echo"
)

// Rejection says why an answer is not what the contract allows. It is operator
// text: it holds our rules and places, and no byte of the answer but member
// names, quoted and cut.
type Rejection struct {
	Layer         string // one of the layers
	Rule          string // a stable id within the layer
	SchemaPath    string // a pointer into the contract's schema, "" where none
	InstancePath  string // a pointer into the answer or the result, rendered
	Message       string // a sentence of ours
	Row           string // the row concerned, "" before one was chosen
	Check         string // the check that failed, as in checks[0]; "" for none
	Status        int    // the upstream's status
	EnginesDiffer bool   // the two schema engines disagreed
}

// Error gives the layer, the rule, the place and the sentence.
func (r *Rejection) Error() string {
	s := r.Layer + " (" + r.Rule + ")"
	if r.Row != "" {
		s = r.Row + ": " + s
	}
	if r.InstancePath != "" {
		s += " at " + r.InstancePath
	}
	if r.SchemaPath != "" {
		s += ", schema " + r.SchemaPath
	}
	return fmt.Sprintf("%s: %s (status %d)", s, r.Message, r.Status)
}
