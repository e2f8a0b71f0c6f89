package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// loopback are the networks whose proxies are trusted unless others are named.
func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// ParseNetworks reads addresses and networks, such as 10.0.0.0/8 or ::1.
func ParseNetworks(list []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range list {
		text = strings.TrimSpace(text)
		if a, err := netip.ParseAddr(text); err == nil {
			a = a.Unmap()
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, &net.ParseError{Type: "network, such as 10.0.0.0/8,", Text: text}
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// peer returns the address that a request came from. Those that came through a Unix socket came from this machine.
func peer(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if host == "" || host == "@" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	a, _ := netip.ParseAddr(host)
	return a.Unmap().WithZone("")
}

// trusts reports whether a is the address of a trusted proxy.
func (s *Service) trusts(a netip.Addr) bool {
	for _, p := range s.o.TrustedProxies {
		if a.IsValid() && p.Contains(a) {
			return true
		}
	}
	return false
}

// address returns where a request was made: what the nearest trusted proxy says of the one before it.
func (s *Service) address(r *http.Request) netip.Addr {
	a := peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(a); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		a = before.Unmap().WithZone("")
	}
	return a
}

// limitedBy is the name under which attempts from an address are counted: whoever has one address of IPv6 has 2⁶⁴.
func limitedBy(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// secure reports whether the browser uses TLS, to this server or to a trusted proxy.
func (s *Service) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	proto := r.Header.Get("X-Forwarded-Proto")
	return strings.EqualFold(strings.TrimSpace(proto[strings.LastIndexByte(proto, ',')+1:]), "https") && s.trusts(peer(r))
}
