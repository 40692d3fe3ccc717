package agentapi

import (
	"fmt"
	"io"
	"log/slog"
)

// What holds a secret as text, on its way to or from the wire, prints and logs
// nothing of itself (internal/hygiene_test.go).

// Format prints none of its fields, by any verb.
func (Caller) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(a caller, not shown)") }

// LogValue logs none of its fields.
func (Caller) LogValue() slog.Value { return slog.StringValue("(a caller, not shown)") }
