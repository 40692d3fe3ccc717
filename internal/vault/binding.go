package vault

// Kinds of identity. None is not stored; see NoLease.
const (
	KindBearer = "bearer"
	KindHeader = "header"
	KindBasic  = "basic"
	KindNone   = "none"
)

// minSecret is the length below which a secret must be said to be short: shorter
// ones can be guessed, and are hard to search for in an answer.
const minSecret = 16

// Binding says how an identity's secret is applied and to which destination
// alone. It is written with the secret and sealed with it; a site file may
// narrow it, never widen it.
type Binding struct {
	Kind     string // KindBearer, KindHeader or KindBasic
	Header   string // KindHeader: the header's name
	Prefix   string // KindHeader: put before the secret
	Username string // KindBasic: the name before the colon

	Scheme   string // "https", or "http" for a loopback host
	Host     string // as the target names it, in lower case
	Port     int
	BasePath string   // "" or a path that begins with "/"
	CADigest string   // of the target's own roots, "" for the system's
	Pins     []string // public key pins, empty where the target has none
}

// Made is the connection that was really made, as the executor saw it.
type Made struct {
	Scheme, Host string
	Port         int
	BasePath     string
	CADigest     string
	Pins         []string // the pins that the connection was checked against
	PeerSPKI     []string // the public keys of the verified chain, in the form of the pins
}
