// This file is the one place that builds an http.Client: its limits, its trust and its proxies. It knows no MCP.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	httpDialTimeout  = 20 * time.Second     // one TCP or TLS set-up; the deadline of a call ends it earlier
	httpIdleConn     = 4 * time.Second      // Node servers close an idle connection at 5 s; be gone before, so that no POST meets the close
	httpIdlePerHost  = 8                    // idle connections kept for one host
	httpIdleTotal    = 64                   // idle connections kept in all
	httpHeaderMax    = 256 << 10            // bytes of response headers
	httpReadBuffer   = 64 << 10             // bytes; large results are read in few calls
	httpTLSSessions  = 64                   // TLS sessions kept for resumption
	httpProxyDefault = "http"               // scheme of a proxy that is given as host:port
	httpRetryMax     = 366 * 24 * time.Hour // a longer Retry-After is taken as this
)

// httpClientConfig is what differs between the program and its tests. Env may be nil: then no proxy is used. RootCAs nil
// means the system's.
type httpClientConfig struct {
	Env     func(string) string
	RootCAs *x509.CertPool
}

// newHTTPClient makes the program's HTTP client. It has no time limit of its own (each request's context has one), keeps no
// cookies, follows no redirect, always verifies certificates and never decompresses by itself.
func newHTTPClient(c httpClientConfig) *http.Client {
	dialer := &net.Dialer{Timeout: httpDialTimeout, KeepAlive: 30 * time.Second}
	return &http.Client{
		CheckRedirect: noRedirect,
		Transport: &http.Transport{
			Proxy:                  newProxyRules(c.Env).proxyFor,
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs, ClientSessionCache: tls.NewLRUClientSessionCache(httpTLSSessions)},
			TLSHandshakeTimeout:    httpDialTimeout,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxIdleConns:           httpIdleTotal,
			MaxIdleConnsPerHost:    httpIdlePerHost,
			IdleConnTimeout:        httpIdleConn,
			MaxResponseHeaderBytes: httpHeaderMax,
			ReadBufferSize:         httpReadBuffer,
		},
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// retryAfter reads how long a response asks to wait: Retry-After in seconds, which some model endpoints give with a fraction, or as a date
// (RFC 9110, section 10.2.3), and retry-after-ms in milliseconds, which is more exact where both stand. Anything else counts as absent.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if d, ok := waitOf(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d, true
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := waitOf(v, time.Second); ok {
		return d, true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), httpRetryMax), true
}

// waitOf reads digits, with a fraction or without, in a unit.
func waitOf(v string, unit time.Duration) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	n, err := strconv.ParseFloat(v, 64)
	if v == "" || strings.Trim(v, "0123456789.") != "" || err != nil && n == 0 {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(httpRetryMax))), true
}

// isLoopbackHost reports a host name or address, without port, that means this machine (RFC 6761, section 6.3).
func isLoopbackHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// proxyRules are the proxy variables as they stood at start: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, each also in lower case,
// which wins. A faulty proxy fails the requests that need it; its text is never shown, it may hold a password.
type proxyRules struct {
	plain, tls       *url.URL
	plainErr, tlsErr error
	none             []noProxyRule
	noneAll          bool
}

// noProxyRule is one item of NO_PROXY. Host has a leading dot where only sub-domains are meant.
type noProxyRule struct {
	host string
	port string
	net  netip.Prefix
}

func newProxyRules(env func(string) string) *proxyRules {
	p := &proxyRules{}
	if env == nil {
		return p
	}
	either := func(name string) string {
		if v := strings.TrimSpace(env(strings.ToLower(name))); v != "" {
			return v
		}
		return strings.TrimSpace(env(name))
	}
	p.plain, p.plainErr = parseProxy("HTTP_PROXY", either("HTTP_PROXY"))
	p.tls, p.tlsErr = parseProxy("HTTPS_PROXY", either("HTTPS_PROXY"))
	for item := range strings.SplitSeq(either("NO_PROXY"), ",") {
		p.addNone(strings.ToLower(strings.TrimSpace(item)))
	}
	return p
}

func parseProxy(name, value string) (*url.URL, error) {
	if value == "" {
		return nil, nil
	}
	if !strings.Contains(value, "://") {
		value = httpProxyDefault + "://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return nil, newError(name + " is no proxy address")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, newError(name + " has a scheme other than http, https and socks5")
}

func (p *proxyRules) addNone(item string) {
	switch {
	case item == "":
		return
	case item == "*":
		p.noneAll = true
		return
	}
	if n, err := netip.ParsePrefix(item); err == nil {
		p.none = append(p.none, noProxyRule{net: n.Masked()})
		return
	}
	rule := noProxyRule{host: item}
	if host, port, err := net.SplitHostPort(item); err == nil {
		rule.host, rule.port = host, port
	}
	rule.host = strings.TrimPrefix(strings.Trim(rule.host, "[]"), "*")
	if a, err := netip.ParseAddr(rule.host); err == nil {
		rule.host, rule.net = "", netip.PrefixFrom(a, a.BitLen())
	}
	p.none = append(p.none, rule)
}

// proxyFor is the Proxy function of the transport. This machine is always reached directly.
func (p *proxyRules) proxyFor(r *http.Request) (*url.URL, error) {
	host, port := strings.ToLower(strings.TrimSuffix(r.URL.Hostname(), ".")), urlPort(r.URL)
	if p.noneAll || isLoopbackHost(host) {
		return nil, nil
	}
	for _, rule := range p.none {
		if rule.matches(host, port) {
			return nil, nil
		}
	}
	if r.URL.Scheme == "https" {
		return p.tls, p.tlsErr
	}
	return p.plain, p.plainErr
}

func (r noProxyRule) matches(host, port string) bool {
	if r.port != "" && r.port != port {
		return false
	}
	if r.net.IsValid() {
		a, err := netip.ParseAddr(host)
		return err == nil && r.net.Contains(a.Unmap())
	}
	if strings.HasPrefix(r.host, ".") {
		return strings.HasSuffix(host, r.host)
	}
	return host == r.host || strings.HasSuffix(host, "."+r.host)
}

// urlPort is the port of u, its scheme's own where none is written.
func urlPort(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return webPort(u.Scheme)
}

// webPort is the usual port of a scheme.
func webPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// urlOrigin is scheme, host and port of u in one form, the scheme's own port left out (RFC 6454, section 6.2).
func urlOrigin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && !(scheme == "https" && port == "443") && !(scheme == "http" && port == "80") {
		host += ":" + port
	}
	return scheme + "://" + host
}
