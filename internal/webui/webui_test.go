package webui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFrame(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, c := range []struct {
		name, method, site string
		want               int
	}{
		{"own page", http.MethodGet, "", http.StatusOK},
		{"another site's form", http.MethodPost, "cross-site", http.StatusForbidden},
		{"own script", http.MethodPost, "same-origin", http.StatusOK},
	} {
		r := httptest.NewRequest(c.method, "http://localhost:7318/", nil)
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		Frame(page).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d", c.name, w.Code, c.want)
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, must := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"} {
			if !strings.Contains(csp, must) {
				t.Errorf("%s: the policy lacks %s", c.name, must)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is unsafe: %s", c.name, csp)
		}
	}
}
