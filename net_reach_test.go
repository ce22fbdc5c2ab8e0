package main

import (
	"net/netip"
	"strings"
	"testing"
)

// netSpellings are ways to write a host that is not public, and what becomes of them: a reach, or a part of the refusal of the address itself.
func netSpellings() map[string]any {
	return map[string]any{
		"http://127.0.0.1/": reachLoopback, "http://127.8.9.1:8080/": reachLoopback, "http://localhost/": reachLoopback, "http://LOCALHOST./": reachLoopback, "http://a.localhost/": reachLoopback, "http://[::1]/": reachLoopback, "http://[0:0::0:1]/": reachLoopback,
		"http://[::ffff:127.0.0.1]/": reachLoopback, "http://[::FFFF:7f00:1]/": reachLoopback,
		"http://10.0.0.1/": reachPrivate, "http://172.16.0.1/": reachPrivate, "http://172.31.255.255/": reachPrivate, "http://192.168.1.1/": reachPrivate, "http://100.64.0.1/": reachPrivate, "http://169.254.1.1/": reachPrivate, "http://0.0.0.0/": reachPrivate, "http://0.1.2.3/": reachPrivate,
		"http://192.0.0.8/": reachPrivate, "http://198.18.0.1/": reachPrivate, "http://203.0.113.9/": reachPrivate, "http://224.0.0.1/": reachPrivate, "http://239.255.255.250/": reachPrivate, "http://240.0.0.1/": reachPrivate, "http://255.255.255.255/": reachPrivate, "http://10.0.0.1./": reachPrivate,
		"http://[fe80::1]/": reachPrivate, "http://[fec0::1]/": reachPrivate, "http://[fc00::1]/": reachPrivate, "http://[fd12:3456::1]/": reachPrivate, "http://[ff02::1]/": reachPrivate, "http://[::]/": reachPrivate, "http://[::7f00:1]/": reachPrivate, "http://[::127.0.0.1]/": reachPrivate,
		"http://[64:ff9b::7f00:1]/": reachPrivate, "http://[64:ff9b::]/": reachPrivate, "http://[64:ff9b::10.0.0.1]/": reachPrivate, "http://[64:ff9b:1::1]/": reachPrivate, "http://[2002:7f00:1::]/": reachPrivate, "http://[2001:0:7f00:1::]/": reachPrivate, "http://[2001:db8::1]/": reachPrivate, "http://[100::1]/": reachPrivate,
		"http://[::ffff:10.0.0.1]/": reachPrivate, "http://[::ffff:a00:1]/": reachPrivate, "http://[::ffff:0:127.0.0.1]/": reachPrivate,
		"http://169.254.169.254/latest/": reachMetadata, "http://[::ffff:169.254.169.254]/": reachMetadata, "http://[fd00:ec2::254]/": reachMetadata, "http://[64:ff9b::a9fe:a9fe]/": reachMetadata, "http://100.100.100.200/": reachMetadata, "http://169.254.170.2/": reachMetadata, "http://168.63.129.16/": reachMetadata,
		"http://metadata.google.internal/": reachMetadata, "http://METADATA.google.internal./": reachMetadata, "http://metadata/": reachMetadata, "http://instance-data.ec2.internal/": reachMetadata,
		"http://127.1/": "spells the address 127.0.0.1", "http://127.0.1/": "127.0.0.1", "http://2130706433/": "127.0.0.1", "http://0x7f000001/": "127.0.0.1", "http://0x7f.1/": "127.0.0.1", "http://0177.0.0.1/": "127.0.0.1", "http://017700000001/": "127.0.0.1", "http://127.000.000.001/": "127.0.0.1",
		"http://0xA9.0xFE.0xA9.0xFE/": "169.254.169.254", "http://2852039166/": "169.254.169.254", "http://0/": "0.0.0.0", "http://127.0.0.1.nip.0x1/": "ends in a number", "http://1.2.3.4.5/": "ends in a number", "http://256.1/": "ends in a number", "http://4294967296/": "ends in a number", "http://0x/": "0.0.0.0",
		"http://１２７.0.0.1/": "not ASCII", "http://①②⑦.0.0.1/": "not ASCII", "http://127。0。0。1/": "not ASCII", "http://ⓛocalhost/": "not ASCII", "http://[fe80::1%25eth0]/": "without a zone", "http://[127.0.0.1]/": "no web address",
		"http://user@127.0.0.1/": "user name", "http://example.com@127.0.0.1/": "user name", "http://127.0.0.1:0/": "port", "http://127.0.0.1:99999/": "port", "http://127.0.0.1:/": "port", "http:///x": "no host", "http:127.0.0.1": "no host", "//127.0.0.1/": "must start", "file:///etc/passwd": "must start", "gopher://127.0.0.1/": "must start", "javascript:x": "must start",
		"http://127.0.0.1%2f.example.com/": "no", "http://exa mple.com/": "no", "http://a..b/": "no host", "http://\x00/": "no web address", "http://a\nb/": "no web address", "http://${HOST}/": "nothing is filled in", "http://127.0.0.1\\@example.com/": "no", "": "must start",
	}
}

func TestNetSpellings(t *testing.T) {
	t.Parallel()
	if n := len(netSpellings()); n < 90 {
		t.Errorf("%d spellings", n)
	}
	for s, want := range netSpellings() {
		u, err := parseWebURL(s)
		if text, ok := want.(string); ok {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v, %v, want %q", s, u, err, text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", s, err)
		} else if got := hostReach(u.Hostname()); got != want {
			t.Errorf("%q: host %s lies %v, want %v", s, u.Hostname(), got, want)
		}
	}
}

func TestNetPublic(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"http://Example.COM": "example.com", "https://example.com./x#y": "example.com", "https://example.com:443/": "example.com", "http://example.com:443/": "example.com:443", "http://example.com:8080": "example.com:8080",
		"http://8.8.8.8/": "8.8.8.8", "http://172.32.0.1/": "172.32.0.1", "http://[2606:4700::1111]:8443/": "[2606:4700::1111]:8443", "http://[64:ff9b::808:808]/": "[64:ff9b::808:808]", " https://a-b_c.xn--p1ai/ ": "a-b_c.xn--p1ai", "http://1.2.3.4.example/": "1.2.3.4.example", "http://3com.example/": "3com.example",
	} {
		u, err := parseWebURL(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if key := hostKey(u); key != want || hostReach(u.Hostname()) != reachPublic || u.Fragment != "" {
			t.Errorf("%q: %q, %v, want %q", s, key, hostReach(u.Hostname()), want)
		}
	}
	if _, err := parseWebURL("http://" + strings.Repeat("a", 64) + ".example/"); err == nil {
		t.Error("a label of 64 bytes passes")
	}
	if _, err := parseWebURL("http://x.example/" + strings.Repeat("a", webURLMax)); err == nil {
		t.Error("a long address passes")
	}
	if got := addrReach(netip.MustParseAddr("fe80::1%lo")); got != reachPrivate {
		t.Errorf("a zone: %v", got)
	}
}
