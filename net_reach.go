// This file knows where a host or an address lies: on the public internet, on this machine, in a network of its own, or where a cloud hands out credentials. It
// looks up and dials nothing.
package main

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// netReach is where an address lies. A later one asks for more.
type netReach int

const (
	reachPublic   netReach = iota
	reachLoopback          // this machine
	reachPrivate           // private, link-local and every other address that is not of the public internet
	reachMetadata          // where clouds hand out credentials of the machine
)

func (r netReach) String() string {
	return [...]string{"public", "this machine itself", "a private, link-local or reserved address", "an address where a cloud hands out the machine's credentials"}[r]
}

const (
	webURLMax  = 8192 // bytes of an address that is called
	webHostMax = 253  // bytes of a host name (RFC 1035, section 2.3.4)
)

// netMetadata are the addresses of metadata services: the one of most clouds, of containers and pods at Amazon, of Alibaba, Oracle and Azure, and those in IPv6.
func netMetadata(a netip.Addr) bool {
	switch a.String() {
	case "169.254.169.254", "169.254.169.253", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd00:ec2::253", "fd00:ec2::23", "fd20:ce::254":
		return true
	}
	return false
}

// netSpecial are the blocks of IPv4 that are not of the public internet (IANA IPv4 Special-Purpose Address Registry, RFC 6890), loopback apart.
func netSpecial() []string {
	return []string{"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"}
}

// netSpecial6 are such blocks within 2000::/3, the only part of IPv6 that is public: protocol assignments with Teredo, documentation, 6to4.
func netSpecial6() []string {
	return []string{"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"}
}

// addrReach says where an address lies. One that holds an IPv4 address is judged by that where it stands for it alone (RFC 4291, 2.5.5.2; RFC 6052, 2.1); what a
// tunnel or an older mapping leads to is not public.
func addrReach(a netip.Addr) netReach {
	a = a.WithZone("").Unmap()
	switch {
	case netMetadata(a):
		return reachMetadata
	case a.IsLoopback():
		return reachLoopback
	case a.Is4():
		return blockReach(a, netSpecial())
	}
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(a) {
		b := a.As16()
		return addrReachBeyond(netip.AddrFrom4([4]byte(b[12:])))
	}
	if !netip.MustParsePrefix("2000::/3").Contains(a) {
		return reachPrivate
	}
	return blockReach(a, netSpecial6())
}

// addrReachBeyond is where a gateway leads: its loopback is not ours.
func addrReachBeyond(a netip.Addr) netReach {
	if r := addrReach(a); r != reachLoopback {
		return r
	}
	return reachPrivate
}

func blockReach(a netip.Addr, blocks []string) netReach {
	for _, b := range blocks {
		if netip.MustParsePrefix(b).Contains(a) {
			return reachPrivate
		}
	}
	return reachPublic
}

// hostReach says where a host lies as far as its name tells. A name that has to be looked up counts as public until then.
func hostReach(host string) netReach {
	if a, err := netip.ParseAddr(host); err == nil {
		return addrReach(a)
	}
	switch {
	case isLoopbackHost(host):
		return reachLoopback
	case host == "metadata" || host == "instance-data" || strings.HasPrefix(host, "metadata.google.") || strings.HasPrefix(host, "instance-data.") || host == "metadata.goog" || host == "metadata.azure.internal" || host == "metadata.tencentyun.com":
		return reachMetadata
	}
	return reachPublic
}

// ownName reports a name that only a network of one's own can know (RFC 6762, 8375, 9476).
func ownName(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	for _, end := range [...]string{".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".private", ".localdomain", ".home"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// parseWebURL reads an address that a tool is to call. The host is in lower case then, without a dot at its end and without the usual port. What could mean one host here and another
// elsewhere is refused: IPv4 in any but the usual spelling, letters beyond ASCII, zones, a user in the address.
func parseWebURL(s string) (*url.URL, error) {
	if len(s) > webURLMax {
		return nil, errorf("has %d bytes, at most %d", len(s), webURLMax)
	}
	if strings.Contains(s, "${") {
		return nil, newError("holds ${, but nothing is filled in here: ${NAME} belongs into headers or body")
	}
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return nil, newError("is no web address")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, newError("must start with http:// or https://")
	case u.User != nil:
		return nil, newError("holds a user name or password; an Authorization header is the place for them")
	case u.Opaque != "" || u.Host == "":
		return nil, newError("names no host")
	}
	host, err := webHost(u.Hostname())
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) || strings.HasSuffix(u.Host, ":") {
		return nil, newError("has a port that is none")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Host = host; port != "" && port != webPort(u.Scheme) {
		u.Host += ":" + port
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// webHost checks a host and brings it into its one form.
func webHost(host string) (string, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil || a.Zone() != "" {
			return "", newError("names no host: the address in brackets is no IPv6 address without a zone")
		}
		return a.String(), nil
	}
	if len(host) > webHostMax {
		return "", errorf("names a host of %d bytes, at most %d", len(host), webHostMax)
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return "", newError("names no host")
		}
	}
	for i := range len(host) {
		switch c := host[i]; {
		case c >= 0x80:
			return "", newError("names a host with letters that are not ASCII; write its xn-- form")
		case c == '-' || c == '.' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z':
		default:
			return "", newError("names no host")
		}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), nil
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; numberLabel(last) {
		if a, ok := oddIPv4(host); ok {
			return "", errorf("spells the address %s in another way; write it so", a)
		}
		return "", newError("names a host that ends in a number and is no IPv4 address")
	}
	return host, nil
}

// numberLabel reports a label that makes a host an IPv4 address (URL standard 3.5, ends in a number).
func numberLabel(s string) bool {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(s, "0123456789") == ""
}

// oddIPv4 reads IPv4 as many programs do: one to four numbers, each decimal, octal or hexadecimal, the last one filling the rest (URL standard 3.5).
func oddIPv4(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var whole uint64
	for i, p := range parts {
		base := 10
		if hex, ok := strings.CutPrefix(p, "0x"); ok {
			p, base = "0"+hex, 16
		} else if len(p) > 1 && p[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(p, base, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return netip.Addr{}, false
			}
			whole = whole<<8 | n
			continue
		}
		room := 8 * (5 - len(parts))
		if n >= 1<<room {
			return netip.Addr{}, false
		}
		whole = whole<<room | n
	}
	return netip.AddrFrom4([4]byte{byte(whole >> 24), byte(whole >> 16), byte(whole >> 8), byte(whole)}), true
}

// hostKey is a host as the policy knows it: name or address, and the port unless it is the usual one of http or https.
func hostKey(u *url.URL) string {
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	if port := urlPort(u); port != webPort(u.Scheme) {
		host += ":" + port
	}
	return host
}
