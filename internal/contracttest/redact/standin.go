package redact

import (
	"fmt"
	"regexp"
	"strings"
)

// tries is how often another stand-in is made where one was given out already.
const tries = 200

// shape replaces a text by one of the same shape: digits by digits, letters by
// letters of the same case, everything else stays. The same text gets the same
// stand-in.
func (r *Redactor) shape(kind, s string) string {
	return r.stand(kind, s, func(n int) string { return shaped(s, n) })
}

// stand remembers a stand-in. make gets a number that grows, and never the text
// as a seed.
func (r *Redactor) stand(kind, s string, make func(n int) string) string {
	if t, ok := r.stands[s]; ok {
		return t
	}
	t := s
	for try := range tries {
		t = make(len(r.stands)*tries + try + 1)
		if t != s && !r.used[t] {
			break
		}
	}
	r.stands[s], r.used[t] = t, true
	r.counts[kind]++
	return t
}

var (
	hexText  = regexp.MustCompile(`^[0-9a-f]+$`)
	upperHex = regexp.MustCompile(`^[0-9A-F]+$`)
	uuid     = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	// lead is a prefix by which a service marks what an id is for.
	lead = regexp.MustCompile(`^(?:[A-Za-z]{1,8}[_-]){1,3}`)
)

// Places of a UUID that say which kind it is.
const (
	uuidVersion = 14
	uuidVariant = 19
)

func shaped(s string, n int) string {
	start := len(lead.FindString(s))
	if start == len(s) || uuid.MatchString(s) {
		start = 0
	}
	isUUID := uuid.MatchString(s)
	letters, capitals := "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if rest := s[start:]; isUUID || hexText.MatchString(rest) || upperHex.MatchString(rest) {
		letters, capitals = "abcdef", "ABCDEF"
	}
	g := sequence(n)
	var b strings.Builder
	b.WriteString(s[:start])
	for i, c := range s[start:] {
		switch {
		case isUUID && (i == uuidVersion || i == uuidVariant):
			b.WriteRune(c)
		case c >= '1' && c <= '9':
			b.WriteByte("123456789"[g()%9])
		case c == '0':
			b.WriteByte('0')
		case c >= 'a' && c <= 'z':
			b.WriteByte(letters[g()%uint32(len(letters))])
		case c >= 'A' && c <= 'Z':
			b.WriteByte(capitals[g()%uint32(len(capitals))])
		case c > 0x7f:
			b.WriteByte('x') // a letter of any alphabet: the name may be in it
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// sequence gives numbers that look mixed and depend on n alone.
func sequence(n int) func() uint32 {
	state := uint32(n)*2654435761 + 1
	return func() uint32 {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		return state >> 3
	}
}

// email stands for an address; the domain is one that no mail goes to (RFC 2606).
func (r *Redactor) email(s string) string {
	return r.stand(kindEmail, s, func(n int) string { return fmt.Sprintf("person%d@example.com", (n-1)/tries+1+(n-1)%tries) })
}

// ipv4 stands for an address: TEST-NET-1 and the two others (RFC 5737).
func (r *Redactor) ipv4(s string) string {
	return r.stand(kindNetwork, s, func(n int) string {
		i := (n-1)/tries + (n-1)%tries
		nets := []string{"192.0.2", "198.51.100", "203.0.113"}
		return fmt.Sprintf("%s.%d", nets[i/254%len(nets)], 1+i%254)
	})
}

// ipv6 stands for an address of the documentation prefix (RFC 3849).
func (r *Redactor) ipv6(s string) string {
	return r.stand(kindNetwork, s, func(n int) string { return fmt.Sprintf("2001:db8::%x", (n-1)/tries+1+(n-1)%tries) })
}
