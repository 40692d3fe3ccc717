package operatorapi

import (
	"fmt"
	"io"
	"log/slog"
)

// What holds a secret as text, on its way to or from the wire, prints and logs
// nothing of itself (internal/hygiene_test.go).

// Format prints none of its fields, by any verb.
func (AddedSlot) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(a new slot, not shown)") }

// LogValue logs none of its fields.
func (AddedSlot) LogValue() slog.Value { return slog.StringValue("(a new slot, not shown)") }
