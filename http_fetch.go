// This file is the guarded HTTP client of the tools: it looks a host up itself, dials exactly an address that was checked, and follows redirects one by one, each judged.
// It knows no policy but through the judge of each call, no secret and no tool.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	fetchRedirectMax  = 10                     // redirects of one call
	fetchRedirectBody = 4 << 10                // bytes of a redirect that are read
	fetchRedirectTime = 250 * time.Millisecond // that reading them may take
	fetchAddrMax      = 8                      // addresses of a host that are tried
	fetchLookupTime   = 5 * time.Second        // looking a host up
	fetchHeaderMax    = 64 << 10               // bytes of an answer's headers
)

// webFetcherConfig is what differs between the program and its tests. Env gives the proxy variables; Lookup and Dial nil mean the system's.
type webFetcherConfig struct {
	Env     func(string) string
	RootCAs *x509.CertPool
	Lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// webFetcher is safe for concurrent use. Connections to public hosts, and in a mode that allows all of them to any, are kept for a few seconds; those to this machine are not.
type webFetcher struct {
	cfg     webFetcherConfig
	proxies *proxyRules
	public  *http.Transport
	any     *http.Transport
	proxied *http.Transport
}

func newWebFetcher(c webFetcherConfig) *webFetcher {
	if c.Lookup == nil {
		c.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	f := &webFetcher{cfg: c, proxies: newProxyRules(c.Env)}
	f.public, f.any = f.transport(reachPublic), f.transport(reachMetadata)
	f.proxied = f.transport(reachMetadata) // only proxies are dialled by it; hosts are checked before
	f.proxied.Proxy = f.proxies.proxyFor
	return f
}

// transport makes one that dials only what lies within reach.
//
//go:noinline for size: it is called in many places
func (f *webFetcher) transport(reach netReach) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.dial(ctx, network, address, reach)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.cfg.RootCAs},
		TLSHandshakeTimeout:    httpDialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      reach == reachLoopback,
		MaxIdleConns:           httpIdleTotal,
		MaxIdleConnsPerHost:    httpIdlePerHost,
		IdleConnTimeout:        httpIdleConn,
		MaxResponseHeaderBytes: fetchHeaderMax,
	}
}

// close lets go of the connections that are kept.
func (f *webFetcher) close() {
	for _, t := range []*http.Transport{f.public, f.any, f.proxied} {
		t.CloseIdleConnections()
	}
}

// reachFault is an address that a host stands for and that the call may not go to.
type reachFault struct {
	host  string
	addr  netip.Addr
	reach netReach
}

func (e *reachFault) Error() string {
	where := visibleLine(e.host)
	if e.addr.IsValid() && e.addr.String() != strings.Trim(e.host, "[]") {
		where += " stands for " + e.addr.String() + ", which"
	}
	s := where + " is " + e.reach.String()
	if e.reach == reachLoopback {
		return s + "; name it as http://127.0.0.1 with its port, so that it can be asked about"
	}
	return s + "; only --yolo goes there"
}

// lookup gives the addresses of a host if all of them lie within reach. A name of this machine is never looked up elsewhere (RFC 6761, 6.3).
func (f *webFetcher) lookup(ctx context.Context, host string, reach netReach) ([]netip.Addr, error) {
	var found []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil {
		found = []netip.Addr{a}
	} else if isLoopbackHost(host) {
		found = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	} else {
		ctx, cancel := context.WithTimeout(ctx, fetchLookupTime)
		defer cancel()
		if found, err = f.cfg.Lookup(ctx, host); err != nil {
			if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
				err = newError("no such host") // the whole names the host again, and the resolver
			}
			return nil, errorf("look up %s: %w", visibleLine(host), err)
		}
	}
	if len(found) == 0 {
		return nil, errorf("look up %s: it has no address", visibleLine(host))
	}
	for i, a := range found {
		found[i] = a.Unmap()
		if r := addrReach(a); r > reach {
			return nil, &reachFault{host, found[i], r}
		}
	}
	return found[:min(len(found), fetchAddrMax)], nil
}

// dial looks up and connects to one of the very addresses that were checked, so that a second look-up cannot give others.
func (f *webFetcher) dial(ctx context.Context, network, address string, reach netReach) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := f.lookup(ctx, host, reach)
	if err != nil {
		return nil, err
	}
	var all error
	for i, a := range addrs {
		c, err := f.dialOne(ctx, network, net.JoinHostPort(a.String(), port), reach, httpDialTimeout/time.Duration(len(addrs)-i))
		if err == nil {
			return c, nil
		}
		if all = joinErrors(all, err); ctx.Err() != nil {
			break
		}
	}
	return nil, all
}

func (f *webFetcher) dialOne(ctx context.Context, network, address string, reach netReach, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if f.cfg.Dial != nil {
		return f.cfg.Dial(ctx, network, address)
	}
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { // what is really connected to
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if r := addrReach(at.Addr()); r > reach {
			return &reachFault{at.Addr().String(), at.Addr(), r}
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

// webCall is one request. Kept are the names of the headers that may go to another origin. Judge is asked where a redirect leads to another host, and where a host
// turns out to lie further than Reach: a reason means no.
type webCall struct {
	Method string
	URL    *url.URL
	Header http.Header
	Body   string
	Reach  netReach
	Kept   []string
	Stay   bool // no redirect is followed, not even one of the same origin
	Judge  func(u *url.URL, reach netReach) (reason string)
}

// webAnswer is the answer of the last host. Stopped says why its redirect was not followed; Next is where that leads. The caller closes Body.
type webAnswer struct {
	*http.Response
	URL       *url.URL
	Redirects int
	Next      *url.URL
	Stopped   string
	Dropped   []string // headers that did not go on to another origin
}

// fetch makes the call and follows its redirects, one judged hop after the other. ctx carries the deadline.
func (f *webFetcher) fetch(ctx context.Context, c webCall) (*webAnswer, error) {
	a := &webAnswer{URL: c.URL}
	c.Header = c.Header.Clone()
	for {
		resp, err := f.send(ctx, c)
		if err != nil {
			return nil, err
		}
		a.Response, a.URL = resp, c.URL
		next, err := redirectTarget(resp, c.URL)
		if err != nil {
			a.Stopped = err.Error()
			return a, nil
		}
		if next == nil {
			return a, nil
		}
		if a.Next, a.Stopped = next, c.stop(resp.StatusCode, next); a.Stopped == "" && a.Redirects == fetchRedirectMax {
			a.Stopped = fmt.Sprintf("there are more than %d redirects", fetchRedirectMax)
		}
		if a.Stopped != "" {
			return a, nil
		}
		leaveRedirect(resp.Body)
		a.Dropped = append(a.Dropped, c.hop(resp.StatusCode, next)...)
		a.Redirects++
		a.Next = nil
	}
}

// leaveRedirect reads the little that a redirect says, so that its connection can serve the next hop. What it says is of no use: one that breaks off or does not
// end costs the connection and no more.
func leaveRedirect(body io.ReadCloser) {
	late := time.AfterFunc(fetchRedirectTime, func() { body.Close() }) // which ends the read
	_, _ = io.CopyN(io.Discard, body, fetchRedirectBody)
	late.Stop()
	body.Close()
}

// redirectTarget gives where an answer redirects to, nil for nowhere.
func redirectTarget(resp *http.Response, from *url.URL) (*url.URL, error) {
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
	default:
		return nil, nil
	}
	place := resp.Header.Get("Location")
	if place == "" {
		return nil, nil
	}
	u, err := url.Parse(place)
	if err != nil || len(place) > webURLMax {
		return nil, newError("it redirects to what is no address")
	}
	next, err := parseWebURL(from.ResolveReference(u).String())
	if err != nil {
		return nil, errorf("it redirects to an address that %w", err)
	}
	return next, nil
}

// stop says why a redirect is not followed, "" if it is.
func (c *webCall) stop(status int, next *url.URL) string {
	sameOrigin := urlOrigin(next) == urlOrigin(c.URL)
	reads := c.Method == http.MethodGet || c.Method == http.MethodHead
	switch {
	case c.Stay:
		return "it is not sent elsewhere"
	case c.URL.Scheme == "https" && next.Scheme == "http":
		return "it redirects from https to plain http"
	case !reads && status != http.StatusSeeOther && (!sameOrigin || status < 307):
		return "a " + c.Method + " is not sent to another address by itself"
	}
	if hostKey(next) == hostKey(c.URL) {
		return ""
	}
	return c.Judge(next, hostReach(next.Hostname()))
}

// hop turns the call into that of the next address (RFC 9110, 15.4). It gives the headers that stay behind.
func (c *webCall) hop(status int, next *url.URL) (dropped []string) {
	if status == http.StatusSeeOther && c.Method != http.MethodHead {
		c.Method, c.Body = http.MethodGet, ""
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			c.Header.Del(name)
		}
	}
	if urlOrigin(next) != urlOrigin(c.URL) {
		for name := range c.Header {
			if !slices.Contains(c.Kept, name) {
				dropped = append(dropped, name)
				c.Header.Del(name)
			}
		}
	}
	if hostKey(next) != hostKey(c.URL) {
		c.Reach = hostReach(next.Hostname()) // as judged
	}
	c.URL = next
	slices.Sort(dropped)
	return dropped
}

// send makes one request. A body is sent once, never again by itself.
func (f *webFetcher) send(ctx context.Context, c webCall) (*http.Response, error) {
	var body io.Reader
	if c.Body != "" {
		body = io.NopCloser(strings.NewReader(c.Body))
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, c.URL.String(), body)
	if err != nil {
		return nil, newError("the request cannot be made of these arguments")
	}
	if c.Body != "" {
		req.ContentLength = int64(len(c.Body))
	}
	req.Header = c.Header.Clone()
	t, err := f.route(ctx, req, c)
	if err != nil {
		return nil, err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, fetchFault(c.URL, err)
	}
	return resp, nil
}

// route chooses how a request travels. What a proxy makes of a name cannot be checked, so it is looked up here before: a name that stands for an address out of reach
// goes to no proxy, and one that is not known here only if it cannot be a name of a network of one's own.
func (f *webFetcher) route(ctx context.Context, req *http.Request, c webCall) (http.RoundTripper, error) {
	reach := c.Reach
	if c.Judge(c.URL, reachMetadata) == "" {
		reach = reachMetadata // a mode in which nothing is out of reach
	}
	if r := hostReach(req.URL.Hostname()); r > reach {
		return nil, &reachFault{req.URL.Hostname(), netip.Addr{}, r}
	}
	proxy, err := f.proxies.proxyFor(req)
	switch {
	case err != nil:
		return nil, err
	case proxy != nil:
		_, err := f.lookup(ctx, req.URL.Hostname(), reach)
		if fault, ok := errors.AsType[*reachFault](err); ok {
			return nil, fault
		}
		if err != nil && ownName(req.URL.Hostname()) && reach < reachMetadata {
			return nil, errorf("%w; only a proxy could know this name, and what it stands for there cannot be checked", err)
		}
		return f.proxied, nil
	case reach == reachPublic:
		return f.public, nil
	case reach == reachMetadata:
		return f.any, nil
	}
	return f.transport(reach), nil
}

// fetchFault says what went wrong with a host, without the address of the request, which may be long.
func fetchFault(u *url.URL, err error) error {
	if fault, ok := errors.AsType[*reachFault](err); ok {
		return fault
	}
	host := visibleLine(hostKey(u))
	if errors.Is(err, context.DeadlineExceeded) {
		return errorf("%s did not answer in time: %w", host, err)
	}
	return errorf("%s: %w", host, err)
}
