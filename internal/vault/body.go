package vault

import (
	"fmt"

	"chatelaine/internal/fault"
)

// fillBody writes the secret into the hole of a body, as the text of a JSON
// string or of a form. The body must be of the kind that the secret is bound to.
func (l *Lease) fillBody(out Outgoing) error {
	form, ok := out.Hole()
	if !ok {
		return fault.Newf(fault.Internal, "the request's body has no place for a credential")
	}
	if bound := l.binding.Param("form") != ""; form != bound {
		return notAllowed("body", bodyKind(bound), bodyKind(form))
	}
	if l.cred.IsZero() {
		return fault.New(fault.Internal, errLeaseClosed)
	}
	closed := false
	err := out.FillBody(func(dst []byte) []byte {
		l.cred.Use(func(b []byte) {
			closed = len(b) == 0
			if form {
				dst = appendFormText(dst, b)
			} else {
				dst = appendJSONText(dst, b)
			}
		})
		return dst
	})
	if err == nil && closed {
		err = errLeaseClosed
	}
	if err != nil {
		return fault.Newf(fault.Internal, "the credential cannot be written into the body: %w", err)
	}
	return nil
}

func bodyKind(form bool) string {
	if form {
		return "form"
	}
	return "JSON"
}

// appendJSONText writes what stands between the quotes of a JSON string (RFC 8259
// section 7). b is UTF-8; what need not be escaped is written as it is.
func appendJSONText(dst, b []byte) []byte {
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20 || c == 0x7f:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendFormText writes a value of application/x-www-form-urlencoded (the URL
// standard, section 5.2).
func appendFormText(dst, b []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range b {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch {
		case alnum || c == '*' || c == '-' || c == '.' || c == '_':
			dst = append(dst, c)
		case c == ' ':
			dst = append(dst, '+')
		default:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}
