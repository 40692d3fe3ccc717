package vault

// Secrets are put into forms and headers as bytes: the encoders of the standard
// library make strings, which nothing can clear.

const upperHex = "0123456789ABCDEF"

// formByte says whether a byte stands for itself in a form.
func formByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~'
}

// appendForm appends text as application/x-www-form-urlencoded writes it (RFC
// 6749, appendix B).
func appendForm(dst, text []byte) []byte {
	for _, c := range text {
		switch {
		case formByte(c):
			dst = append(dst, c)
		case c == ' ':
			dst = append(dst, '+')
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// form is the body of a token request while it is written: name and value, name
// and value. None of these values is secret.
type form []byte

// add appends a member; an empty value is left out.
func (f form) add(name, value string) form {
	if value == "" {
		return f
	}
	return append(appendForm(f.open(name), []byte(value)), '&')
}

// open appends a member's name, for a value to follow.
func (f form) open(name string) form {
	return append(append(f, name...), '=')
}
