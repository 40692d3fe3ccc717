// Package webui is the operator's page. This release serves none: what exists is
// the frame that every page of it will stand in, so that none can be served
// without it. It must never ask for a passphrase, run an inline script or be
// framed. Only cmd/chatelained may import it; it may import internal/operatorapi.
package webui

import "net/http"

// policy allows our own files and nothing else (CSP Level 3): no inline script
// or style, no framing, no form that leaves, no connection elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Frame puts every page behind the strict policy and the standard library's
// protection against requests from other origins.
func Frame(pages http.Handler) http.Handler {
	guarded := http.NewCrossOriginProtection().Handler(pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		guarded.ServeHTTP(w, r)
	})
}
