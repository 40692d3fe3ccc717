package main_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"chatelaine/internal/testkit"
)

// rawHTTP is a client without our manners, over the agent socket.
func rawHTTP(socket string) *http.Client {
	return &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}, DisableKeepAlives: true}}
}

// rawCall posts exactly these bytes to an action.
func rawCall(t *testing.T, h *home, action, body, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://localhost/v1/actions/"+action, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := rawHTTP(h.places.AgentSocket()).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
