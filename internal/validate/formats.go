package validate

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// formats are the only formats that a schema may name. Both engines are given
// these, because their own accept prose as a uri, +1.2.3.4 as an ipv4 and
// endless fractions of a second.
var formats = map[string]func(string) bool{
	"date-time": func(s string) bool { _, ok := parseDateTime(s); return ok },
	"date":      isDate,
	"uuid":      isUUID,
	"uri":       isURI,
	"ipv4":      isIPv4,
	"email":     isEmail,
	"hostname":  isHostname,
}

// finiteFormats bound a string's length by themselves.
var finiteFormats = map[string]bool{"date-time": true, "date": true, "uuid": true, "ipv4": true, "email": true, "hostname": true}

var errFormat = errors.New("not of this format")

const fractionDigits = 9 // what time.Time holds; RFC 3339 sets no limit

// instant is a point in time whose fraction keeps the digits it was written in.
type instant struct {
	time     time.Time
	fraction string // "" or its digits
}

// utc writes the instant as RFC 3339 in UTC, with the fraction as it came.
func (i instant) utc() string {
	s := i.time.UTC().Format("2006-01-02T15:04:05")
	if i.fraction != "" {
		s += "." + i.fraction
	}
	return s + "Z"
}

// parseDateTime reads date-time of RFC 3339, section 5.6, with real dates. A
// leap second (:60) is refused, because no clock of ours can hold it.
func parseDateTime(s string) (instant, bool) {
	if len(s) < len("2006-01-02T15:04:05Z") || s[10]|0x20 != 't' {
		return instant{}, false
	}
	rest := s[19:]
	fraction := ""
	if rest[0] == '.' {
		n := countDigits(rest[1:])
		if n == 0 || n > fractionDigits {
			return instant{}, false
		}
		fraction, rest = rest[1:n+1], rest[n+1:]
	}
	if rest == "z" {
		rest = "Z"
	}
	if rest != "Z" && !isOffset(rest) {
		return instant{}, false
	}
	return assemble(s[:10], s[11:19], fraction, rest)
}

// isOffset says whether s is ±hh:mm; time.Parse would take odd ones.
func isOffset(s string) bool {
	return len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':' &&
		countDigits(s[1:3]) == 2 && countDigits(s[4:]) == 2 && s[1:3] < "24" && s[4:] < "60"
}

// assemble makes the instant of a date, a clock time, fraction digits and a
// zone (Z or ±hh:mm), each already of the right characters or refused here.
func assemble(date, clock, fraction, zone string) (instant, bool) {
	if !isDate(date) || len(clock) != 8 || countDigits(clock) != 2 || countDigits(clock[3:]) != 2 || countDigits(clock[6:]) != 2 {
		return instant{}, false
	}
	text := date + "T" + clock
	if fraction != "" {
		text += "." + fraction
	}
	t, err := time.Parse(time.RFC3339Nano, text+zone)
	if err != nil {
		return instant{}, false
	}
	// An offset must not carry the year out of four digits.
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return instant{}, false
	}
	return instant{t, fraction}, true
}

func countDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func isDate(s string) bool {
	if len(s) != 10 || countDigits(s) != 4 || countDigits(s[5:]) != 2 || countDigits(s[8:]) != 2 {
		return false
	}
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isUUID takes the form of RFC 9562, section 4, in either case of letters.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4() && a.String() == s
}

const uriCharacters = "-._~:/?#[]@!$&'()*+,;=%"

// isURI takes an absolute URI of RFC 3986: a scheme, only the characters of the
// RFC, whole percent triplets.
func isURI(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isAlnum(s[i]) && !strings.ContainsRune(uriCharacters, rune(s[i])) {
			return false
		}
		if s[i] == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])) {
			return false
		}
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && len(s) > len(u.Scheme)+1
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

const (
	labelBytes    = 63  // RFC 1123, section 2.1, and RFC 1035, section 2.3.4
	hostnameBytes = 253 // the same, without the final dot
	localBytes    = 64  // RFC 5321, section 4.5.3.1.1
	emailBytes    = 254 // RFC 5321, section 4.5.3.1.3, without the angle brackets
)

func isHostname(s string) bool {
	if len(s) > hostnameBytes {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > labelBytes || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !isAlnum(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return true
}

// isEmail takes a dot-atom before the @ and a host name after it. A quoted
// local part is refused: it can hold prose.
func isEmail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || len(s) > emailBytes || len(local) > localBytes || !isHostname(domain) {
		return false
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" {
			return false
		}
		for i := range len(atom) {
			if !isAlnum(atom[i]) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", rune(atom[i])) {
				return false
			}
		}
	}
	return true
}
