package validate

import (
	"encoding/json"
	"strconv"
	"strings"
)

// number reads a number as RFC 8259 section 6 writes it and keeps its spelling.
func (p *parser) number() (any, error) {
	start := p.pos
	n := scanNumber(p.in[start:])
	p.pos += max(n, 1)
	if n == 0 {
		return nil, p.fail(ruleNumber, start)
	}
	// What a number may not run into: 01, 1.2.3, 0x1, 1e5e5, 1_000.
	if c := p.peek(); c >= '0' && c <= '9' || c == '.' || c == '_' || c == '+' || c == '-' || c|0x20 >= 'a' && c|0x20 <= 'z' {
		return nil, p.fail(ruleNumber, start)
	}
	text := string(p.in[start:p.pos])
	if rule := numberRule(text, p.limits); rule != "" {
		return nil, p.fail(rule, start)
	}
	return json.Number(text), nil
}

// scanNumber returns the length of the JSON number at the start of b, zero if
// there is none or it is broken off.
func scanNumber[T []byte | string](b T) int {
	i := 0
	digits := func() int {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i - from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if from := i; digits() == 0 || b[from] == '0' && i > from+1 {
		return 0
	}
	if i < len(b) && b[i] == '.' {
		i++
		if digits() == 0 {
			return 0
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if digits() == 0 {
			return 0
		}
	}
	return i
}

// exponentText bounds the digits of an exponent as written, so that it always
// fits an int.
const exponentText = 6

// numberRule says which limit a well-formed number breaks, "" if none.
func numberRule(text string, l Limits) string {
	mantissa, exponent := splitExponent(text)
	if exponent == "" && len(text) <= min(l.NumberDigits, l.Exponent) {
		return "" // what nearly every number of an answer is
	}
	if len(exponent) > exponentText {
		return ruleExponent
	}
	if len(mantissa) > l.NumberDigits+l.Exponent+len("-0.") {
		return ruleDigits // leading zeros of a fraction count here
	}
	if significant(mantissa) > l.NumberDigits {
		return ruleDigits
	}
	written, _ := strconv.Atoi(exponent)
	d, _ := parseDecimal(json.Number(text))
	if beyond(written, l.Exponent) || d.digits != "" && beyond(d.adjusted(), l.Exponent) {
		return ruleExponent
	}
	return ""
}

func beyond(n, limit int) bool { return n > limit || n < -limit }

func splitExponent(text string) (mantissa, exponent string) {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// significant counts the digits of a mantissa after its leading zeros.
func significant(mantissa string) int {
	s := strings.TrimLeft(mantissa, "-0.")
	return len(s) - strings.Count(s, ".")
}

// decimal is an exact number: digits × 10^exp, negative where neg. digits has
// no zero at either end; it is empty for zero, which has no sign.
type decimal struct {
	neg    bool
	digits string
	exp    int
}

// adjusted is the exponent in scientific form.
func (d decimal) adjusted() int { return d.exp + len(d.digits) - 1 }

// parseDecimal reads any JSON number whose exponent fits in six characters.
func parseDecimal(n json.Number) (decimal, bool) {
	s := string(n)
	if s == "" || scanNumber(s) != len(s) {
		return decimal{}, false
	}
	mantissa, exponent := splitExponent(s)
	if len(exponent) > exponentText {
		return decimal{}, false
	}
	d := decimal{}
	d.exp, _ = strconv.Atoi(exponent)
	mantissa, d.neg = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.exp -= len(fraction)
	d.digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(d.digits, "0")
	d.exp += len(d.digits) - len(trimmed)
	d.digits = trimmed
	if d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func (d decimal) compare(o decimal) int {
	if s := d.sign() - o.sign(); s != 0 || d.sign() == 0 {
		return clamp(s)
	}
	if a, b := d.adjusted(), o.adjusted(); a != b {
		return clamp(a-b) * d.sign()
	}
	// The same magnitude: the digits compare like fractions.
	return strings.Compare(d.digits, o.digits) * d.sign()
}

func clamp(n int) int { return max(-1, min(1, n)) }

// isInteger says whether the value has no fraction: 1.0 and 1e2 are integers.
func (d decimal) isInteger() bool { return d.digits == "" || d.exp >= 0 }

// plain writes the value without an exponent.
func (d decimal) plain() string {
	if d.digits == "" {
		return "0"
	}
	sign := ""
	if d.neg {
		sign = "-"
	}
	switch point := len(d.digits) + d.exp; {
	case d.exp >= 0:
		return sign + d.digits + strings.Repeat("0", d.exp)
	case point > 0:
		return sign + d.digits[:point] + "." + d.digits[point:]
	default:
		return sign + "0." + strings.Repeat("0", -point) + d.digits
	}
}

// Plain decimals are written between these exponents, as ECMAScript does, and
// for every whole number that has no zero to add.
const (
	plainAbove = -7
	plainBelow = 21
)

// canonical is the one spelling of the value.
func (d decimal) canonical() string {
	adj := d.adjusted()
	if d.digits == "" || adj >= plainAbove && adj < plainBelow || d.exp == 0 {
		return d.plain()
	}
	sign, rest := "", ""
	if d.neg {
		sign = "-"
	}
	if len(d.digits) > 1 {
		rest = "." + d.digits[1:]
	}
	return sign + d.digits[:1] + rest + "e" + strconv.Itoa(adj)
}

// Compare orders two numbers by their exact decimal values: -1, 0 or 1. What is
// no JSON number is ordered by its spelling, so that it equals only itself.
func Compare(a, b json.Number) int {
	x, ok := parseDecimal(a)
	y, also := parseDecimal(b)
	if !ok || !also {
		return strings.Compare(string(a), string(b))
	}
	return x.compare(y)
}
