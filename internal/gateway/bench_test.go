package gateway

import (
	"fmt"
	"testing"

	"chatelaine/internal/actions"
)

const getOne = `contract: v1
action: get_one
version: 1.0.0
summary: Read one thing.
owner: tests
effect: read
input: {type: object, additionalProperties: false, properties: {}}
route: {target: jobs}
request:
  method: GET
  path: /one
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
      success: {run: /run}
result: {type: object, additionalProperties: false, required: [run], properties: {run: {type: string, pattern: '^[a-z0-9]{1,8}$', maxLength: 8}}}
`

// A call with a good token makes no exchange, and costs what a call with a static
// secret does: most of either is the disk's.
func BenchmarkCall(b *testing.B) {
	for _, kind := range []string{"static", "token"} {
		b.Run(kind, func(b *testing.B) {
			r := newRig(b, getOne)
			var k *fakeTokens
			if kind == "token" {
				k = r.withTokens()
			}
			r.remote.answer(issuing(func(string, string, string) reply { return ok(`{"run":"r1"}`) }))
			r.want(r.call("get_one", "bench-first", "{}"), "OK")
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				r.want(r.call("get_one", fmt.Sprintf("bench-%06d", n), "{}"), "OK")
			}
			if k != nil && k.count != 1 {
				b.Errorf("%d exchanges for %d calls", k.count, n+1)
			}
		})
	}
}

// The step itself, where nothing is to be waited for.
func BenchmarkReady(b *testing.B) {
	for _, kind := range []string{"static", "token"} {
		b.Run(kind, func(b *testing.B) {
			r := newRig(b, getOne)
			if kind == "token" {
				r.withTokens()
			}
			r.remote.answer(issuing(func(string, string, string) reply { return ok(`{"run":"r1"}`) }))
			r.want(r.call("get_one", "bench-first", "{}"), "OK")
			var c claimed
			c.set = r.g.Set()
			var err error
			c.contract, _ = c.set.Contract("get_one")
			c.input, err = c.contract.ParseInput(map[string]any{})
			r.must(err)
			c.route, err = c.set.Resolve(c.contract, c.input)
			r.must(err)
			l, err := r.vault.Lease(b.Context(), "bot")
			r.must(err)
			defer l.Close()
			id := c.route.Target().Identity()
			b.ReportAllocs()
			for b.Loop() {
				r.must(r.g.ready(b.Context(), c, actions.IdentityFact{Name: id, Generation: 1}, l))
			}
		})
	}
}
