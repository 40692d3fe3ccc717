package validate

import (
	"encoding/json"
	"time"
)

// Media is the form of body that a row reads.
type Media uint8

// The media of a row. JSON is what a row reads unless it says otherwise.
const (
	MediaJSON Media = iota // application/json or +json, UTF-8
	MediaText              // text/* with a Content-Type, UTF-8
	MediaNone              // zero bytes, whatever the headers say
)

// OperandKind says where one side of a comparison comes from.
type OperandKind uint8

// The kinds of operand. The zero value is none of them and is refused.
const (
	OperandConst OperandKind = iota + 1 // Const
	OperandFrom                         // From: a value path such as input.project
	OperandAt                           // At: a pointer into the body, Absent where it is not there
)

// Operand is one side of equals or compare.
type Operand struct {
	Kind      OperandKind
	Const     any
	From      string
	At        string
	Absent    json.Number
	HasAbsent bool
}

// PredicateSpec is one predicate of a row or of find, as the contract wrote it.
type PredicateSpec struct {
	Op          string          // equals, in, exists, is_null, not, all_of, any_of, each, some, none, count, compare
	Ptr         string          // equals, in, exists, is_null, each, some, none, count
	Arg         Operand         // equals: a constant or a value path
	Set         []any           // in
	Subs        []PredicateSpec // not, each, some, none: one; all_of, any_of: one or more
	Cmp         string          // count, compare: < <= == != >= >
	N           json.Number     // count
	Left, Right Operand         // compare
}

// PickKind says what a pick begins with.
type PickKind uint8

// The kinds of pick. The zero value is none of them and is refused.
const (
	PickPointer PickKind = iota + 1 // At
	PickFind                        // Find, then At inside the element found
	PickHeader                      // Header, exactly once in the answer
	PickFrom                        // From: a value path
	PickConst                       // Const
	PickEach                        // Each: a list of objects
)

// PickSpec is one pick: where a value comes from and the conversions that are
// written, applied in the order of the fields.
type PickSpec struct {
	Kind   PickKind
	At     string
	Find   *FindSpec
	Header string
	From   string
	Const  any
	Each   *EachSpec

	Base64      bool
	LastSegment bool
	Trim        bool
	StripPrefix string
	Lower       bool
	Map         map[string]any
	HasMap      bool
	Other       any
	HasOther    bool
	Integer     bool
	Time        string // rfc3339, rfc3339_loose, unix_seconds, unix_millis, unix_nanos, http_date
	Text        bool
	Prefix      string
	Matches     string // anchored pattern that the finished text must match
	Optional    bool
	Null        string // keep, omit or refuse; "" is refuse
}

// FindSpec names exactly one element of an array.
type FindSpec struct {
	In    string
	Where PredicateSpec
}

// EachSpec makes a list of new objects from an array of at most Max elements.
type EachSpec struct {
	In   string
	Max  int
	Pick map[string]PickSpec
}

// FailureSpec is a row's failure: a code, or a vendor's code that is looked up.
type FailureSpec struct {
	Code  string
	At    string
	Map   map[string]string
	Other string
}

// RowSpec is one row of a step's outcomes.
type RowSpec struct {
	Name       string // where the row stands, for the operator: request.outcomes[0]
	Status     []int
	Media      Media
	When       *PredicateSpec
	Expect     any // a JSON Schema from Parse; nil: none
	Success    map[string]PickSpec
	HasSuccess bool
	Display    map[string]PickSpec
	Failure    *FailureSpec
	Capture    map[string]PickSpec
	HasCapture bool
	NotDone    bool
	// Pending (poll only) says that the end has not come. The row is looked at
	// last, and matches only where every other row of its status is false.
	Pending bool
	// TookEffect (reconcile only) says whether the request did what it was sent
	// for; nil where the row does not say.
	TookEffect *bool
}

// DisplayBound bounds one display text: code points and lines.
type DisplayBound struct{ Max, Lines int }

// CheckSpec is one semantic check on the answer.
type CheckSpec struct {
	Kind         string // same, fresh, after_call, increased, signed
	Left, Right  string // same, increased: value paths
	At           string // fresh, after_call: a value path
	Within, Skew time.Duration
	Signed       *SignedSpec // signed
}

// ReaderSpec is everything that one step's answer is read by.
type ReaderSpec struct {
	Step    StepKind
	Change  bool // a step of an action that changes something
	Rows    []RowSpec
	Result  any // JSON Schema of data; nil: the empty object
	Display map[string]DisplayBound
	Checks  []CheckSpec
	Host    string // the target's host, with its port unless that is the scheme's own; for last_segment
	Limits  Limits // zero: AnswerLimits
}

// Scope looks up a value path such as input.project, target.owner or call.now.
type Scope func(path string) (any, bool)
