package release

import (
	"strings"
	"time"
)

// Lie is a way of answering.
type Lie uint8

// The ways of answering. Each lie differs from the honest answer in one thing.
const (
	Honest            Lie = iota
	MaintenanceBanner     // words for people where a state should be
	DuplicateMember       // the state twice, with two values
	WrongProject          // another project's deployment
	StaleTime             // observed two hours ago
	EchoedToken           // the caller's own token in the message
	HugeBody              // 2 MiB
	DeepBody              // 1,000 arrays in each other
	Silent                // takes the request and never answers
)

const (
	hugeBytes = 2 << 20
	deepLevel = 1000
	staleAge  = 2 * time.Hour
)

// Banner is what MaintenanceBanner says in place of a state.
const Banner = "down for maintenance until 14:00"

// tell renders the body of a deployment under a lie. token is the one that the
// request carried.
func tell(l Lie, d deployment, token string, now time.Time) []byte {
	r := d.report(now)
	switch l {
	case MaintenanceBanner:
		r.State = Banner
	case WrongProject:
		r.Project = "shop-billing"
	case StaleTime:
		r.Observed = stamp(now.Add(-staleAge))
	case EchoedToken:
		r.Message = "called with Bearer " + token
	}
	body := r.encode()
	inside := strings.TrimSuffix(string(body), "}")
	switch l {
	case DuplicateMember:
		return []byte(inside + `,"state":"healthy"}`)
	case HugeBody:
		return []byte(inside + `,"message":"` + strings.Repeat("a", hugeBytes) + `"}`)
	case DeepBody:
		return []byte(inside + `,"message":` + strings.Repeat("[", deepLevel) + strings.Repeat("]", deepLevel) + "}")
	}
	return body
}
