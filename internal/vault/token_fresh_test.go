package vault

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"chatelaine/internal/fault"
)

// givesRefresh answers with a token and this refresh token.
func givesRefresh(t *testing.T, fresh, more string) *endpoint {
	t.Helper()
	text, err := json.Marshal(fresh)
	if err != nil {
		t.Fatal(err)
	}
	return says(jsonAnswer(200, withToken(`,"refresh_token":`+string(text)+more)))
}

// Whatever a server gives in place of a refresh token, the vault can be opened
// afterwards: too long a one is refused, and the identity stays as it was.
func TestNoRefreshTokenClosesTheVault(t *testing.T) {
	for name, fresh := range map[string]string{
		"long":              strings.Repeat("r", maxSecret),
		"longer once saved": strings.Repeat(`"`, maxSecret),
	} {
		t.Run(name, func(t *testing.T) {
			v, path := create(t, cheap)
			had := `{"client_secret":"` + strings.Repeat("c", 4000) + `","refresh_token":"` + firstRefresh + `"}`
			put(t, v, "a", had, tokenBinding(KindOAuth2Refresh, map[string]string{"client_id": "c", "auth": "body"}))
			_, err := carried(t, v, "a", givesRefresh(t, fresh, "").exchange)
			wantCode(t, err, fault.IdentityUnavailable)
			if got := stored(t, reopen(t, path, cheap), "a"); got != had {
				t.Errorf("the file holds %d bytes", len(got))
			}
		})
	}
}

// What cannot be read again is not saved, wherever it comes from.
func TestNothingUnreadableIsSaved(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	before := read(t, path)
	_, err := v.commit(t.Context(), func(_ opened, c *contents, _ uint64) error {
		it := c.items["a"]
		it.sealed = make([]byte, maxPEM+sealExtra+1)
		c.items["a"] = it
		return nil
	})
	if err == nil || string(read(t, path)) != string(before) {
		t.Errorf("it was saved: %v", err)
	}
}

// A public client's refresh token is kept so that the very same text is sent.
func TestRefreshTokenIsSentAsItCame(t *testing.T) {
	for _, fresh := range []string{"{rt-001-curly", `{"refresh_token":"rt-001-another"}`, " rt-001-with a space ", `"rt-001-quoted"`} {
		v, _ := create(t, cheap)
		put(t, v, "a", firstRefresh, refreshBinding())
		e := givesRefresh(t, fresh, "")
		wantCarried(t, v, "a", e.exchange, firstToken)
		v.tokens.drop(allTokens, errLocked())
		wantCarried(t, v, "a", e.exchange, firstToken)
		form, err := url.ParseQuery(e.last().whole)
		if err != nil || form.Get("refresh_token") != fresh {
			t.Errorf("after %q was sent %q", fresh, e.last().whole)
		}
	}
}

// A token that cannot be used does not lose the refresh token that came beside it.
func TestRefreshTokenBesideABadToken(t *testing.T) {
	for name, answer := range map[string]string{
		"an end as text":      `{"access_token":"` + firstToken + `","token_type":"Bearer","expires_in":"3600","refresh_token":"` + refreshOf(1) + `"}`,
		"another type":        `{"access_token":"` + firstToken + `","token_type":"mac","refresh_token":"` + refreshOf(1) + `"}`,
		"no token":            `{"token_type":"Bearer","refresh_token":"` + refreshOf(1) + `"}`,
		"the secret as it is": `{"access_token":"` + firstRefresh + `","token_type":"Bearer","refresh_token":"` + refreshOf(1) + `"}`,
	} {
		v, path := create(t, cheap)
		put(t, v, "a", firstRefresh, refreshBinding())
		_, err := carried(t, v, "a", says(jsonAnswer(200, answer)).exchange)
		wantCode(t, err, fault.InvalidResponse)
		if got := stored(t, reopen(t, path, cheap), "a"); got != refreshOf(1) {
			t.Errorf("%s: the file holds %s", name, got)
		}
	}
}
