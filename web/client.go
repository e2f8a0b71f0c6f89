package web

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/umbelhq/umbel/web/fair"
)

// maxClient bounds each text that identifies a client, in bytes.
const maxClient = 256

// client identifies who made a request: an address with its user, as far as these are known, and the program there.
// What a proxy on this machine says of the address is taken: others cannot reach it past the proxy.
func client(r *http.Request, user string) fair.Client {
	address := r.RemoteAddr
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	if ip, err := netip.ParseAddr(address); err == nil && ip.IsLoopback() {
		all := r.Header.Values("X-Forwarded-For")
		if len(all) > 0 {
			last := all[len(all)-1]
			address = cmp.Or(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]), address)
		}
	}
	if ip, err := netip.ParseAddr(address); err == nil && ip.Unmap().Is6() {
		if net, err := ip.Prefix(64); err == nil { // whoever has one address has these
			address = net.String()
		}
	}
	program := r.UserAgent()
	return fair.Client{
		Address: address[:min(len(address), maxClient)] + " " + user, Part: program[:min(len(program), maxClient)],
	}
}
