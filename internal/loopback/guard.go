package loopback

import (
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"chatelaine/internal/fault"
)

// BodyBytes is the most a caller's body may hold.
const BodyBytes = 64 << 10

// browserHeaders are sent by browsers and proxies and by no agent's client. A
// page in the operator's browser must not reach a local listener, whatever name
// it resolved.
var browserHeaders = []string{"Origin", "Referer", "Cookie", "Forwarded", "Proxy-Authorization", "Proxy-Connection", "Upgrade"}

// hostsOf lists the Host values that a listener answers to. A Unix socket has
// no name a browser could be led to, so it takes any.
func hostsOf(ln net.Listener) map[string]bool {
	t, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return nil
	}
	_, port, _ := net.SplitHostPort(t.String())
	return map[string]bool{"127.0.0.1:" + port: true, "[::1]:" + port: true, "localhost:" + port: true}
}

// guard stands before any routing. Its refusals are a sentence of our own and
// say nothing of what lies behind.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if status, why := s.unfit(r); why != "" {
			s.logger().Info("request refused at the door", "listener", s.Name, "why", why)
			w.Header().Set("Connection", "close")
			unread(w, r, refusedLimit)
			s.refuse(w, r, status, why)
			return
		}
		unread(w, r, BodyLimit)
		next.ServeHTTP(w, r)
	})
}

// refusedLimit is how long a refused request may still be sending its body: the
// client reads our answer in that time, and does not hold the connection longer.
const refusedLimit = time.Second

// unread bounds how long a body may take that is still to come, whether a
// handler reads it or not: the server waits for its end before it lets go of the
// connection.
func unread(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(deadline(limit))
	}
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if s.Refuse != nil {
		s.Refuse(w, r, status, why)
		return
	}
	http.Error(w, "refused: "+why, status)
}

// unfit names the first reason to refuse a request, "" if there is none.
func (s *Server) unfit(r *http.Request) (int, string) {
	switch {
	case r.ProtoMajor != 1 || r.ProtoMinor != 1:
		return http.StatusHTTPVersionNotSupported, "HTTP/1.1 is needed"
	case r.Host == "" || (s.hosts != nil && !s.hosts[r.Host]):
		return http.StatusMisdirectedRequest, "the Host header names another server"
	case !strings.HasPrefix(r.RequestURI, "/") || r.URL.Scheme != "" || r.URL.Host != "":
		return http.StatusBadRequest, "the request target must be a path"
	case len(r.TransferEncoding) > 0 || r.ContentLength < 0:
		return http.StatusLengthRequired, "send a Content-Length; chunked bodies are not taken"
	case len(r.Header.Values("Content-Encoding")) > 0:
		return http.StatusUnsupportedMediaType, "an encoded body is not taken"
	case r.ContentLength > BodyBytes:
		return http.StatusRequestEntityTooLarge, "the body is larger than 64 KiB"
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") {
			return http.StatusForbidden, "a forwarded request is not taken"
		}
	}
	for _, name := range browserHeaders {
		if _, there := r.Header[name]; there {
			return http.StatusForbidden, "the header " + name + " is not taken here"
		}
	}
	if v, there := r.Header["Sec-Fetch-Site"]; there && (len(v) != 1 || v[0] != "none") {
		return http.StatusForbidden, "requests from web pages are not taken"
	}
	return unfitMethod(r)
}

func unfitMethod(r *http.Request) (int, string) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if r.ContentLength != 0 {
			return http.StatusBadRequest, "a GET has no body"
		}
	case http.MethodPost, http.MethodPut, http.MethodDelete:
		if r.Method == http.MethodDelete && r.ContentLength == 0 {
			return 0, ""
		}
		kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		charset := strings.ToLower(params["charset"])
		if err != nil || kind != "application/json" || len(r.Header.Values("Content-Type")) != 1 || (charset != "" && charset != "utf-8") {
			return http.StatusUnsupportedMediaType, "send Content-Type: application/json"
		}
	default:
		return http.StatusMethodNotAllowed, "this method is not taken"
	}
	return 0, ""
}

// ReadBody reads a whole body of at most BodyBytes, within BodyLimit. Deadlines
// are lifted again, so that a long answer is not cut by a short read limit.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(deadline(BodyLimit))
	b, err := io.ReadAll(io.LimitReader(r.Body, BodyBytes+1))
	_ = c.SetReadDeadline(noDeadline)
	if err != nil {
		return nil, fault.Invalid(err, fault.Field{Pointer: "", Reason: "the body did not arrive whole"})
	}
	if len(b) > BodyBytes {
		return nil, fault.Invalid(nil, fault.Field{Pointer: "", Reason: "the body is larger than 64 KiB"})
	}
	return b, nil
}

// WriteJSON writes one whole answer, within WriteLimit.
func WriteJSON(w http.ResponseWriter, status int, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(deadline(WriteLimit))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline)
}
