package executor

import (
	"net/http"
	"time"

	"chatelaine/internal/actions"
)

// place is the fixed destination of a step and what is believed about it.
type place struct {
	scheme, host  string
	port          int
	basePath      string
	caPEM         []byte
	caDigest      string
	pins          []string
	allowLoopback bool
	allowPrivate  bool
	http2         bool
}

// step is one request, complete but for the credential.
type step struct {
	to          place
	method      string
	path        string // escaped, with base path
	query       string // encoded, without "?"
	header      http.Header
	body        []byte
	hole        *Hole // where in body the credential goes, nil for a header or none
	contentType string
	timeout     time.Duration
	change      bool
	reuse       bool
	exchange    bool // of a secret for a token
}

// stepOf takes what the executor needs out of a frozen request. Nothing else
// of the plan is known here.
func stepOf(r actions.Request) step {
	s := step{
		method: r.Method(), path: r.WirePath(), query: r.Query(),
		header: r.Header(), body: r.Body(), contentType: r.ContentType(),
		timeout: r.Timeout(), change: r.Change(), reuse: r.ReuseConnection(),
	}
	if h, ok := r.Hole(); ok {
		s.hole = &Hole{Offset: h.Offset, Form: h.Form}
	}
	if t := r.Target(); t != nil {
		s.to = place{
			scheme: t.Scheme(), host: t.Host(), port: t.Port(), basePath: t.BasePath(),
			caPEM: t.CAPEM(), caDigest: t.CADigest(), pins: t.Pins(),
			allowLoopback: t.AllowLoopback(), allowPrivate: t.AllowPrivate(), http2: t.HTTP2(),
		}
	}
	return s
}
