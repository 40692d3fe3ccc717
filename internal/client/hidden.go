package client

import (
	"fmt"
	"io"
	"log/slog"
)

// What holds a secret as text, on its way to or from the wire, prints and logs
// nothing of itself (internal/hygiene_test.go).

// Format prints none of its fields, by any verb.
func (AgentOptions) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "(an agent's options, not shown)")
}

// LogValue logs none of its fields.
func (AgentOptions) LogValue() slog.Value { return slog.StringValue("(an agent's options, not shown)") }

// Format prints none of its fields, by any verb.
func (NewSession) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(a new session, not shown)") }

// LogValue logs none of its fields.
func (NewSession) LogValue() slog.Value { return slog.StringValue("(a new session, not shown)") }

// Format prints none of its fields, by any verb.
func (SavedSession) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "(a saved session, not shown)")
}

// LogValue logs none of its fields.
func (SavedSession) LogValue() slog.Value { return slog.StringValue("(a saved session, not shown)") }

// Format prints none of its fields, by any verb.
func (PutIdentity) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "(a secret to store, not shown)")
}

// LogValue logs none of its fields.
func (PutIdentity) LogValue() slog.Value { return slog.StringValue("(a secret to store, not shown)") }

// Format prints none of its fields, by any verb.
func (AddedSlot) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(a new slot, not shown)") }

// LogValue logs none of its fields.
func (AddedSlot) LogValue() slog.Value { return slog.StringValue("(a new slot, not shown)") }

// Format prints none of its fields, by any verb.
func (RotatedKey) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(a rotated key, not shown)") }

// LogValue logs none of its fields.
func (RotatedKey) LogValue() slog.Value { return slog.StringValue("(a rotated key, not shown)") }

// Format prints none of its fields, by any verb.
func (wire) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(a connection, not shown)") }

// LogValue logs none of its fields.
func (wire) LogValue() slog.Value { return slog.StringValue("(a connection, not shown)") }
