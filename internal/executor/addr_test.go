package executor

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

func TestAddresses(t *testing.T) {
	for addr, want := range map[string]kind{
		"93.184.216.34": kindGlobal, "8.8.8.8": kindGlobal, "2606:4700:4700::1111": kindGlobal, "::ffff:8.8.8.8": kindGlobal,
		"192.0.1.1": kindGlobal, "172.32.0.1": kindGlobal, "100.128.0.1": kindGlobal, "198.20.0.1": kindGlobal,

		"127.0.0.1": kindLoopback, "127.255.255.254": kindLoopback, "::1": kindLoopback, "::ffff:127.0.0.1": kindLoopback,

		"10.0.0.1": kindPrivate, "172.16.0.1": kindPrivate, "172.31.255.255": kindPrivate, "192.168.1.1": kindPrivate,
		"100.64.0.1": kindPrivate, "fc00::1": kindPrivate, "fdff::1": kindPrivate, "::ffff:10.0.0.1": kindPrivate,

		"0.0.0.0": kindNever, "0.1.2.3": kindNever, "::": kindNever, "::127.0.0.1": kindNever,
		"169.254.169.254": kindNever, "169.254.0.1": kindNever, "::ffff:169.254.169.254": kindNever,
		"100.100.100.200": kindNever, "168.63.129.16": kindNever, "192.0.0.192": kindNever, "fd00:ec2::254": kindNever, "fd20:ce::254": kindNever,
		"192.0.0.9": kindNever, "192.0.2.1": kindNever, "198.51.100.7": kindNever, "203.0.113.9": kindNever,
		"192.31.196.1": kindNever, "192.52.193.1": kindNever, "192.88.99.1": kindNever, "192.175.48.1": kindNever,
		"198.18.0.1": kindNever, "198.19.255.255": kindNever, "224.0.0.1": kindNever, "239.255.255.255": kindNever,
		"240.0.0.1": kindNever, "255.255.255.255": kindNever,
		"64:ff9b::7f00:1": kindNever, "64:ff9b::a9fe:a9fe": kindNever, "64:ff9b:1::1": kindNever, "2002:7f00:1::": kindNever,
		"2001::1": kindNever, "2001:0:ce49:7601::1": kindNever, "2001:db8::1": kindNever, "3fff::1": kindNever, "2620:4f:8000::1": kindNever,
		"100::1": kindNever, "100:0:0:1::1": kindNever, "5f00::1": kindNever, "fe80::1": kindNever, "fec0::1": kindNever, "ff02::1": kindNever,
		"fe80::1%eth0": kindNever, "2606:4700::1%lo": kindNever, "::1%lo": kindNever,
		"::ffff:0:8.8.8.8": kindNever, "4000::1": kindNever, "1234::1": kindNever,
	} {
		if got, what := classify(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %d (%s), want %d", addr, got, what, want)
		}
	}
	if k, _ := classify(netip.Addr{}); k != kindNever {
		t.Error("the zero address may be dialled")
	}
}

// fixedResolver answers in turn; the last answer repeats.
type fixedResolver struct {
	answers [][]string
	asked   atomic.Int32
}

func (r *fixedResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n := int(r.asked.Add(1))
	var out []netip.Addr
	for _, a := range r.answers[min(n, len(r.answers))-1] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

// waitingResolver never answers.
type waitingResolver struct{}

func (waitingResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestResolverCannotLeadInside(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)), "api.example")
	to := place{scheme: schemeHTTPS, host: "api.example", port: srv.Port(), caPEM: ca.PEM()}
	for _, answer := range []string{
		"127.0.0.1", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "0.0.0.0", "::", "10.1.2.3", "192.168.0.1", "fe80::1%lo", "::127.0.0.1",
	} {
		t.Run(answer, func(t *testing.T) {
			cred := &bearer{}
			x := newExecutor(t, Options{Resolver: &fixedResolver{answers: [][]string{{answer}}}})
			ex := sendTo(t, x, change(to), cred)
			wantCode(t, ex, fault.TargetNotAllowed)
			if ex.Phase != PhaseResolve || ex.Wrote || cred.asked.Load() != 0 {
				t.Errorf("phase %q, wrote %v", ex.Phase, ex.Wrote)
			}
		})
	}
	if srv.Conns() != 0 {
		t.Errorf("%d connections were opened", srv.Conns())
	}
}

func TestTheTargetsWordOpensOnlyWhatItSays(t *testing.T) {
	to := place{scheme: schemeHTTPS, allowLoopback: true}
	for addr, ok := range map[string]bool{"127.0.0.1": true, "10.0.0.1": false, "169.254.169.254": false, "8.8.8.8": true} {
		if err := checkAddr(to, netip.MustParseAddr(addr)); (err == nil) != ok {
			t.Errorf("loopback target, %s: %v", addr, err)
		}
	}
	to = place{scheme: schemeHTTPS, allowPrivate: true}
	for addr, ok := range map[string]bool{"127.0.0.1": false, "10.0.0.1": true, "fd00::1": true, "fd00:ec2::254": false, "169.254.169.254": false, "100.100.100.200": false} {
		if err := checkAddr(to, netip.MustParseAddr(addr)); (err == nil) != ok {
			t.Errorf("private target, %s: %v", addr, err)
		}
	}
	to = place{scheme: schemeHTTP, allowLoopback: true, allowPrivate: true}
	for addr, ok := range map[string]bool{"127.0.0.1": true, "10.0.0.1": false, "8.8.8.8": false} {
		if err := checkAddr(to, netip.MustParseAddr(addr)); (err == nil) != ok {
			t.Errorf("plain target, %s: %v", addr, err)
		}
	}
}

// A name that first leads to an allowed address and then inside: every attempt
// checks anew, and the address that was checked is the one that is dialled.
func TestFlippingAnswers(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)), "api.example")
	r := &fixedResolver{answers: [][]string{{"10.9.9.9", "127.0.0.1"}, {"169.254.169.254"}}}
	to := place{scheme: schemeHTTPS, host: "api.example", port: srv.Port(), caPEM: ca.PEM(), allowLoopback: true}
	x := newExecutor(t, Options{Resolver: r})
	s := read(to)
	s.reuse = false
	ex := sendTo(t, x, s, &bearer{})
	wantCode(t, ex, "")
	if ex.Connection.RemoteAddr.String() != srv.Addr() || ex.Connection.Host != "api.example" {
		t.Errorf("connection %+v", ex.Connection)
	}
	ex = sendTo(t, x, s, &bearer{})
	wantCode(t, ex, fault.TargetNotAllowed)
	if r.asked.Load() != 2 || srv.Conns() != 1 {
		t.Errorf("%d look-ups, %d connections", r.asked.Load(), srv.Conns())
	}
}
