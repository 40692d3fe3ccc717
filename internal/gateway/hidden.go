package gateway

import (
	"fmt"
	"io"
	"log/slog"
)

// What holds a secret as text, on its way to or from the wire, prints and logs
// nothing of itself (internal/hygiene_test.go).

// Format prints none of its fields, by any verb.
func (SessionOpened) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "(a new session, not shown)")
}

// LogValue logs none of its fields.
func (SessionOpened) LogValue() slog.Value { return slog.StringValue("(a new session, not shown)") }

// Format prints none of its fields, by any verb.
func (Ask) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(an agent's call, not shown)") }

// LogValue logs none of its fields.
func (Ask) LogValue() slog.Value { return slog.StringValue("(an agent's call, not shown)") }

// Format prints none of its fields, by any verb: of a success it is a credential.
func (TokenAnswer) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "(the answer of an exchange, not shown)")
}

// LogValue logs none of its fields.
func (TokenAnswer) LogValue() slog.Value {
	return slog.StringValue("(the answer of an exchange, not shown)")
}

// Format prints none of its fields, by any verb.
func (exchanged) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(an exchange, not shown)") }

// LogValue logs none of its fields.
func (exchanged) LogValue() slog.Value { return slog.StringValue("(an exchange, not shown)") }
