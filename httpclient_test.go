package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestHTC19ProxyRules(t *testing.T) {
	env := map[string]string{
		"HTTP_PROXY": "http://plain.test:1", "https_proxy": "tls.test:2", "HTTPS_PROXY": "http://loses.test:3",
		"NO_PROXY": "exact.test, .sub.test,*.star.test, port.test:8443, 10.0.0.0/8 ,192.0.2.7,[2001:db8::1]:443",
	}
	tests := []struct{ target, want string }{
		{"http://a.test/", "http://plain.test:1"},
		{"https://a.test/", "http://tls.test:2"},
		{"https://exact.test/", ""},
		{"https://EXACT.test./", ""},
		{"https://deep.exact.test/", ""},
		{"https://notexact.test/", "http://tls.test:2"},
		{"https://sub.test/", "http://tls.test:2"},
		{"https://a.sub.test/", ""},
		{"https://a.star.test/", ""},
		{"https://port.test:8443/", ""},
		{"https://port.test/", "http://tls.test:2"},
		{"https://10.1.2.3/", ""},
		{"https://11.1.2.3/", "http://tls.test:2"},
		{"http://192.0.2.7/", ""},
		{"https://[2001:db8::1]/", ""},
		{"https://[2001:db8::1]:8443/", "http://tls.test:2"},
		{"http://localhost:80/", ""},
		{"http://x.localhost/", ""},
		{"http://127.9.9.9/", ""},
		{"https://[::1]/", ""},
		{"https://[::ffff:127.0.0.1]/", ""},
	}
	rules := newProxyRules(func(name string) string { return env[name] })
	for _, tc := range tests {
		r, err := http.NewRequest("POST", tc.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, err := rules.proxyFor(r)
		got := ""
		if u != nil {
			got = u.String()
		}
		if err != nil || got != tc.want {
			t.Errorf("proxy for %s = %q, %v; want %q", tc.target, got, err, tc.want)
		}
	}
	star := newProxyRules(func(name string) string { return map[string]string{"HTTP_PROXY": "p:1", "NO_PROXY": "*"}[name] })
	r, _ := http.NewRequest("POST", "http://a.test/", nil)
	if u, err := star.proxyFor(r); u != nil || err != nil {
		t.Errorf("NO_PROXY=*: got %v, %v", u, err)
	}
	for _, bad := range []string{"ftp://user:hunter22@p.test", "http://user:hunter22@[p.test", "://hunter22"} {
		broken := newProxyRules(func(name string) string { return map[string]string{"HTTP_PROXY": bad}[name] })
		u, err := broken.proxyFor(r)
		if err == nil || u != nil || strings.Contains(err.Error(), "hunter22") || !strings.Contains(err.Error(), "HTTP_PROXY") {
			t.Errorf("HTTP_PROXY=%q: got %v, %v; want an error that names the variable alone", bad, u, err)
		}
	}
}

// httpTestCert makes a certificate for host, signed by itself.
func httpTestCert(t *testing.T, host string, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// httpTestTLS serves f once more over TLS and HTTP/2 with the certificate given.
func httpTestTLS(t *testing.T, f *fakeHTTP, cert tls.Certificate) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = httpTestSilent()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// HTC-17: an unverified server gets nothing of what tai sends.
func TestHTC17Certificates(t *testing.T) {
	valid := time.Now().Add(24 * time.Hour)
	tests := []struct {
		name, host string
		until      time.Time
		trusted    bool
		ok         bool
	}{
		{"good", "127.0.0.1", valid, true, true},
		{"self-signed", "127.0.0.1", valid, false, false},
		{"expired", "127.0.0.1", time.Now().Add(-time.Hour), true, false},
		{"wrong name", "other.test", valid, true, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeHTTP(t)
			cert, pool := httpTestCert(t, tc.host, tc.until)
			s := httpTestTLS(t, f, cert)
			c := httpClientConfig{}
			if tc.trusted {
				c.RootCAs = pool
			} else {
				c.RootCAs = x509.NewCertPool()
			}
			tr := httpTestTransport(t, httpConfig{URL: s.URL, Headers: map[string]string{"Authorization": "Bearer hunter22"}, Client: newHTTPClient(c)})
			_, err := httpTestInit(tr)
			if ok := err == nil; ok != tc.ok {
				t.Errorf("initialize: %v; want success %v", err, tc.ok)
			}
			if n := len(f.requests("")); (n > 0) != tc.ok {
				t.Errorf("%d requests arrived", n)
			}
			if certErr, ok := errors.AsType[*tls.CertificateVerificationError](err); !tc.ok && !ok {
				t.Errorf("error %v (%v), want a certificate fault", err, certErr)
			}
		})
	}
}

// HTC-20: the same exchanges over HTTP/2.
func TestHTC20HTTP2(t *testing.T) {
	for _, sse := range []bool{false, true} {
		f := newFakeHTTP(t)
		f.SSE = sse
		cert, pool := httpTestCert(t, "127.0.0.1", time.Now().Add(time.Hour))
		s := httpTestTLS(t, f, cert)
		tr := httpTestTransport(t, httpConfig{URL: s.URL, Client: newHTTPClient(httpClientConfig{RootCAs: pool})})
		httpTestHandshake(t, tr)
		m, err := tr.call(context.Background(), httpTestCall(2))
		if err != nil || !strings.Contains(string(m.Result), "echo") {
			t.Errorf("SSE %v: call over HTTP/2: %s, %v", sse, m.Result, err)
		}
		for _, r := range f.requests("") {
			if r.Proto != "HTTP/2.0" {
				t.Errorf("%s came over %s", r.RPC.Method, r.Proto)
			}
		}
	}
}

// httpTestProxy is a CONNECT proxy that leads every tunnel to one address. It records what it can see.
type httpTestProxy struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newHTTPTestProxy(t *testing.T, to, login string) *httpTestProxy {
	t.Helper()
	p := &httpTestProxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, fmt.Sprintf("%s %s %v", r.Method, r.Host, r.Header))
		p.mu.Unlock()
		if login != "" && r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(login)) {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		p.tunnel(w, to)
	}))
	t.Cleanup(p.Server.Close)
	return p
}

func (p *httpTestProxy) tunnel(w http.ResponseWriter, to string) {
	far, err := net.Dial("tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close()
	near, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
	var done sync.WaitGroup
	done.Go(func() { io.Copy(far, buf); far.Close() })
	io.Copy(near, far)
	near.Close()
	done.Wait()
}

// HTC-19: the token is seen by the server, never by the proxy; a refusal shows no password.
func TestHTC19Proxy(t *testing.T) {
	f := newFakeHTTP(t)
	cert, pool := httpTestCert(t, "mcp.test", time.Now().Add(time.Hour))
	s := httpTestTLS(t, f, cert)
	p := newHTTPTestProxy(t, s.Listener.Addr().String(), "user:proxypass")
	connect := func(user string) error {
		env := func(name string) string {
			return map[string]string{"HTTPS_PROXY": "http://" + user + "@" + p.Listener.Addr().String()}[name]
		}
		tr := httpTestTransport(t, httpConfig{
			URL: "https://mcp.test/mcp", Headers: map[string]string{"Authorization": "Bearer hunter22"},
			Client: newHTTPClient(httpClientConfig{Env: env, RootCAs: pool}),
		})
		_, err := httpTestInit(tr)
		return err
	}
	if err := connect("user:proxypass"); err != nil {
		t.Fatalf("through the proxy: %v", err)
	}
	if got := f.requests(methodInitialize)[0].Header.Get("Authorization"); got != "Bearer hunter22" {
		t.Errorf("the server got Authorization %q", got)
	}
	err := connect("user:wrongpass")
	if err == nil || strings.Contains(err.Error(), "wrongpass") || !strings.Contains(err.Error(), "Proxy Authentication Required") {
		t.Errorf("refused by the proxy: %v", err)
	}
	p.Server.Close()
	if err := connect("user:proxypass"); err == nil || strings.Contains(err.Error(), "proxypass") {
		t.Errorf("proxy gone: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) != 2 {
		t.Fatalf("the proxy saw %q", p.seen)
	}
	for _, seen := range p.seen {
		if !strings.HasPrefix(seen, "CONNECT mcp.test:443") || strings.Contains(seen, "hunter22") {
			t.Errorf("the proxy saw %q", seen)
		}
	}
}

func TestHTTPClientDefaults(t *testing.T) {
	c := newHTTPClient(httpClientConfig{})
	tr, ok := c.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("transport is %T", c.Transport)
	}
	if tr.TLSClientConfig.InsecureSkipVerify || tr.TLSClientConfig.MinVersion != tls.VersionTLS12 {
		t.Error("TLS is not verified, or older than 1.2 is taken")
	}
	if c.Timeout != 0 || c.Jar != nil || !tr.DisableCompression || tr.MaxResponseHeaderBytes != httpHeaderMax {
		t.Error("client has a time limit, cookies, hidden decompression or no header cap")
	}
	if c.CheckRedirect(nil, nil) != http.ErrUseLastResponse {
		t.Error("redirects are followed")
	}
}
