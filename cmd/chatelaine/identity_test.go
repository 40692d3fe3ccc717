package main

import (
	"encoding/base64"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

func TestJWTExpiry(t *testing.T) {
	token := func(claims string) string {
		return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	if when, ok := jwtExpiry([]byte(token(`{"iss":"a","exp":1767614400}`))); !ok || !when.Equal(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("%s, %v", when, ok)
	}
	for what, text := range map[string]string{
		"no token": "ghp_abcdefghijklmnop", "two parts": "eyJh.eyJh", "four parts": token(`{"exp":1767614400}`) + ".x", "no base64": "eyJh.%%%.x",
		"no JSON": token("exp"), "no exp": token(`{"iss":"a"}`), "exp is a text": token(`{"exp":"1767614400"}`), "exp twice": token(`{"exp":1767614400,"exp":1}`),
		"exp is negative": token(`{"exp":-1}`), "exp is no date": token(`{"exp":1e300}`), "empty": "",
	} {
		if when, ok := jwtExpiry([]byte(text)); ok {
			t.Errorf("%s: %s", what, when)
		}
	}
}

func FuzzJWTExpiry(f *testing.F) {
	f.Add([]byte("eyJhbGciOiJub25lIn0.eyJleHAiOjMyNDcyMTQ0MDAwfQ.c2ln"))
	f.Add([]byte("ey.."))
	f.Fuzz(func(t *testing.T, b []byte) {
		if when, ok := jwtExpiry(b); ok && (when.Year() < 1970 || when.Year() > 9999) {
			t.Errorf("%s cannot be written as a date", when)
		}
	})
}

func TestExpiryOf(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-01-06": "2026-01-06T00:00:00Z", "2026-01-05T12:00:01Z": "2026-01-05T12:00:01Z", "2026-01-05T14:30:00+02:00": "2026-01-05T12:30:00Z", "": "",
	} {
		got, err := expiryOf(text, now)
		if err != nil || (want == "") != got.IsZero() || want != "" && got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"2026-01-05", "2026-01-05T12:00:00Z", "2026-02-30", "05.01.2027", "tomorrow", "2027-01-05T12:00:00", "14d"} {
		if got, err := expiryOf(text, now); err == nil {
			t.Errorf("%q is taken as %s", text, got)
		}
	}
}

func TestSpan(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m", time.Hour: "1h", 47 * time.Hour: "47h", 2 * day: "2d", 400 * day: "400d",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// Every code that can end a proof has words of its own, and a code that is no
// failure of the identity asks to try again.
func TestProofWords(t *testing.T) {
	for _, code := range fault.Codes() {
		err := notProved("bot", &client.IdentityProof{Code: code, Message: "A sentence.", RequestID: "act_1"}, "")
		f := asFailure(err)
		if f.exit == exitDone || f.exit == exitUnknown || f.msg == "" {
			t.Errorf("%s: exit %d, %q", code, f.exit, f.msg)
		}
	}
	for code, exit := range map[fault.Code]int{fault.RemoteUnauthenticated: exitRefused, fault.VaultLocked: exitLater, fault.Overloaded: exitLater, fault.OutcomeUnknown: exitRefused} {
		if f := asFailure(notProved("bot", &client.IdentityProof{Code: code}, "")); f.exit != exit {
			t.Errorf("%s ends with %d, want %d", code, f.exit, exit)
		}
		if f := asFailure(notProved("bot", &client.IdentityProof{Code: code}, "nothing changed")); f.exit != exitRefused {
			t.Errorf("a rotation: %s ends with %d", code, f.exit)
		}
	}
}
