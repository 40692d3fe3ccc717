package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestAddressesInProc(t *testing.T) {
	addr, ok := parseProcAddr("0100007F:1C95")
	if !ok || addr != netip.MustParseAddrPort("127.0.0.1:7317") {
		t.Errorf("%v", addr)
	}
	addr, ok = parseProcAddr("00000000000000000000000001000000:1C95")
	if !ok || addr != netip.MustParseAddrPort("[::1]:7317") {
		t.Errorf("%v", addr)
	}
	for _, bad := range []string{"", ":", "0100007F", "0100007F:", "zz:1", "0100:1", "0100007F:10000"} {
		if _, ok := parseProcAddr(bad); ok {
			t.Errorf("%q was read", bad)
		}
	}
}

const procTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1C95 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0
   1: 00000000:1C95 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 112 1 0 100 0 0 10 0
   2: 0200007F:1C95 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1002        0 113 1 0 100 0 0 10 0
   3: 0100007F:1C96 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 114 1 0 100 0 0 10 0
   4: 0100007F:1C95 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1004        0 115 1 0 100 0 0 10 0
   short line
`

// Every socket that may take the connection counts; one stranger is enough.
func TestListenersInTable(t *testing.T) {
	got := listenersIn(strings.NewReader(procTable), netip.MustParseAddrPort("127.0.0.1:7317"))
	if len(got) != 2 || got[0] != 1000 || got[1] != 1001 {
		t.Errorf("%v", got)
	}
}

func TestSquatterOnPortGetsNoToken(t *testing.T) {
	var asked int
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		says(200, "application/json", `{"ok":true,"vault":"open","contracts":1}`)(w, r)
	})}
	go s.Serve(l)
	defer s.Close()
	url := "http://" + l.Addr().String()
	a, err := NewAgent(AgentOptions{URL: url, Owners: Owners{}.With(uint32(os.Getuid()) + 1), Token: "planted"})
	if err != nil {
		t.Fatal(err)
	}
	var stranger *StrangerError
	if _, err := a.Health(context.Background()); !errors.As(err, &stranger) || asked != 0 {
		t.Fatalf("error %v, asked %d times", err, asked)
	}
	if a, err = NewAgent(AgentOptions{URL: url, Owners: OwnAndRoot()}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if h, err := a.Health(context.Background()); err != nil || h.Vault != "open" {
		t.Fatalf("%+v, %v", h, err)
	}
}
