package contracts_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/testkit"
	"chatelaine/internal/validate"
)

// overTLS is a client of a product, apart from the executor's.
func overTLS(t *testing.T, pool *x509.CertPool) *http.Client {
	client := &http.Client{
		Timeout:   testkit.Patience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// ask speaks to a product without chatelaine; status 0 means no answer.
func ask(t *testing.T, client *http.Client, method, url string, body []byte, secret header, more ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(secret.name, secret.value)
	for i := 0; i+1 < len(more); i += 2 {
		req.Header.Set(more[i], more[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return 0, nil
	}
	return resp.StatusCode, answer.Bytes()
}

// header is a secret as it stands in a request.
type header struct{ name, value string }

func basic(user, password string) header {
	return header{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

// bound writes a secret as the vault would: for one destination.
type bound struct {
	header
	target *actions.Target
}

func (b bound) Attach(out executor.Outgoing, c executor.Connection) error {
	if c.Scheme != b.target.Scheme() || c.Host != b.target.Host() || c.Port != b.target.Port() {
		return fmt.Errorf("the connection goes to %s://%s:%d", c.Scheme, c.Host, c.Port)
	}
	return out.SetHeader(b.name, b.value)
}

// performer makes one call at a real product, with the daemon's parts.
type performer struct {
	x      *executor.Executor
	target *actions.Target
	secret bound
	now    time.Time
}

// perform takes a call from its input to its end: parse, resolve, look, freeze,
// send, poll, prove. A reconcile is none of it: an answer that is lost or
// refused fails the test.
func perform(t *testing.T, set *actions.Set, action, input string, secret header, now time.Time) *validate.Proved {
	t.Helper()
	contract, ok := set.Contract(action)
	if !ok {
		t.Fatalf("%s is not loaded", action)
	}
	doc, err := validate.Parse([]byte(input), validate.CallerLimits())
	if err != nil {
		t.Fatal(err)
	}
	in, err := contract.ParseInput(doc)
	if err != nil {
		t.Fatal(err)
	}
	route, err := set.Resolve(contract, in)
	if err != nil {
		t.Fatal(err)
	}
	target := route.Target()
	p := performer{x: executor.New(executor.Options{}), target: target, secret: bound{secret, target}, now: now}
	defer p.x.Close()
	looking, err := actions.Begin(contract, route, in,
		actions.IdentityFact{Name: target.Identity(), Generation: 1},
		actions.CallFacts{CallID: "act_01TEST", IdempotencyKey: "3f2b8a8e-8f0a-4b6e-9d7c-5a1f0e2d3c4b", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for _, more := looking.Next(); more; _, more = looking.Next() {
		step, err := looking.Step(now)
		proved := p.send(t, step, err)
		captured, goesOn := proved.Captured()
		if !goesOn {
			return proved
		}
		looking = looking.With(captured)
	}
	plan, err := looking.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	step, err := plan.Step(actions.StepRequest, now, nil)
	proved := p.send(t, step, err)
	if captured, goesOn := proved.Captured(); goesOn {
		testkit.Until(t, "the end of the poll", func() bool {
			step, err := plan.Step(actions.StepPoll, now, captured)
			proved = p.send(t, step, err)
			return !proved.Pending()
		})
	}
	return proved
}

// send makes one request and proves its answer.
func (p performer) send(t *testing.T, step actions.Step, err error) *validate.Proved {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	ex := p.x.Send(ctx, p.target.Identity(), step.Request(), p.secret)
	if ex.Err != nil {
		t.Fatalf("%s: %v (phase %s)", step.Name(), ex.Err, ex.Phase)
	}
	raw := validate.Raw{Status: ex.Status, Header: ex.Header, Trailer: ex.Trailer, Body: ex.Body}
	proved, rejection := step.Reader().Prove(raw, step.Scope(), p.now)
	if rejection != nil {
		t.Fatalf("%s: the answer of the real product is refused: %v (status %d, %q)", step.Name(), rejection, ex.Status, ex.Body)
	}
	return proved
}

// wantFailure fails the test unless a call ended with this code.
func wantFailure(t *testing.T, proved *validate.Proved, want string) {
	t.Helper()
	if code, _ := proved.Failure(); proved.OK() || code != want {
		t.Errorf("ended OK=%v %s, want %s", proved.OK(), code, want)
	}
}

// onlyContract makes a contracts folder with one of the shipped contracts.
func onlyContract(t *testing.T, action string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, action), os.DirFS(action)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeTLS writes ca.pem, leaf.pem and leaf.key into dir and returns the pool.
func writeTLS(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	ca := testkit.CA(t)
	write(t, dir, "ca.pem", string(ca.PEM()))
	testkit.LeafFiles(t, ca, dir)
	return ca.Pool()
}
