package client

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// stateListen is TCP_LISTEN in /proc/net/tcp (include/net/tcp_states.h).
const stateListen = "0A"

// maxProcTable bounds what is read of the kernel's table.
const maxProcTable = 64 << 20

// portOwners returns the users of every socket that listens where a connection
// to addr may end: the exact address, or a wildcard of either family.
func portOwners(addr netip.AddrPort) ([]uint32, error) {
	var out []uint32
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		got := listenersIn(io.LimitReader(f, maxProcTable), addr)
		f.Close()
		out = append(out, got...)
	}
	return out, nil
}

func listenersIn(r io.Reader, addr netip.AddrPort) []uint32 {
	var out []uint32
	s := bufio.NewScanner(r)
	for s.Scan() {
		f := strings.Fields(s.Text())
		// sl local rem st tx:rx tr:when retrnsmt uid timeout inode
		if len(f) < 10 || f[3] != stateListen {
			continue
		}
		local, ok := parseProcAddr(f[1])
		if !ok || local.Port() != addr.Port() || !serves(local.Addr(), addr.Addr()) {
			continue
		}
		if uid, err := strconv.ParseUint(f[7], 10, 32); err == nil {
			out = append(out, uint32(uid))
		}
	}
	return out
}

func serves(local, want netip.Addr) bool {
	local = local.Unmap()
	if local == want {
		return true
	}
	// An IPv6 wildcard may take IPv4 connections too; counting it can only make
	// the check stricter.
	return local.IsUnspecified() && (local.Is6() || want.Is4())
}

// parseProcAddr reads "0100007F:1C95": the address as 32-bit words in the
// machine's byte order, the port in hexadecimal.
func parseProcAddr(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	if !ok {
		return netip.AddrPort{}, false
	}
	b, err := hex.DecodeString(host)
	if err != nil || (len(b) != 4 && len(b) != 16) {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	ip, _ := netip.AddrFromSlice(b)
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, uint16(p)), true
}
