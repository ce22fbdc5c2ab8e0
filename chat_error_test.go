package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// chatFailure runs one completion that cannot succeed and gives its fault.
func chatFailure(t *testing.T, base string, env map[string]string) (*chatError, int) {
	t.Helper()
	c := newChatClient(chatEndpoint{Name: "test", Wire: wireAnthropic, BaseURL: base, Model: "m", Key: "a-key-that-stays-secret", KeyFrom: "TEST_KEY"},
		newHTTPClient(httpClientConfig{Env: func(name string) string { return env[name] }}))
	waits := 0
	c.wait = func(context.Context, time.Duration) error { waits++; return nil }
	_, err := c.complete(t.Context(), chatRequest{}, func(chatDelta) {})
	ce, ok := errors.AsType[*chatError](err)
	if !ok {
		t.Fatalf("%s: %v", base, err)
	}
	if strings.Contains(ce.Message+ce.Hint, "stays-secret") {
		t.Errorf("the key shows: %q, %q", ce.Message, ce.Hint)
	}
	return ce, waits
}

// Why an endpoint cannot be reached is said, and what may help; what another try cannot help is not tried again.
func TestChatUnreachableKinds(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	sealed := httptest.NewUnstartedServer(http.NotFoundHandler())
	sealed.Config.ErrorLog = log.New(io.Discard, "", 0)
	sealed.StartTLS()
	defer sealed.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	var through string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = r.URL.String()
		w.WriteHeader(http.StatusTeapot)
	}))
	defer proxy.Close()
	for name, tc := range map[string]struct {
		base, message, hint string
		env                 map[string]string
		waits               int
	}{
		"nothing there":   {closed.URL + "/v1", "nothing listens there", "started?", nil, chatTries - 1},
		"not trusted":     {sealed.URL + "/v1", "its certificate is not trusted", "among the system's", nil, 0},
		"no TLS there":    {strings.Replace(plain.URL, "http:", "https:", 1) + "/v1", "does not speak TLS", "http instead of https", nil, 0},
		"no proxy there":  {"http://model.example/v1", "the proxy cannot be used", "NO_PROXY", map[string]string{"HTTP_PROXY": closed.URL}, chatTries - 1},
		"a proxy of none": {"https://model.example/v1", "HTTPS_PROXY", "NO_PROXY", map[string]string{"HTTPS_PROXY": "gopher://user:hidden@x"}, chatTries - 1},
	} {
		ce, waits := chatFailure(t, tc.base, tc.env)
		if ce.Fault != faultUnreachable || !strings.Contains(ce.Message, tc.message) || !strings.Contains(ce.Hint, tc.hint) || waits != tc.waits || strings.Contains(ce.Message, "hidden") {
			t.Errorf("%s: got %q, %q after %d waits, want %q, %q after %d", name, ce.Message, ce.Hint, waits, tc.message, tc.hint, tc.waits)
		}
	}
	ce, _ := chatFailure(t, "http://model.example/v1", map[string]string{"http_proxy": proxy.URL})
	if through != "http://model.example/v1/messages" || ce.Status != http.StatusTeapot {
		t.Errorf("through the proxy went %q, %+v", through, ce)
	}
}

func TestChatTransportError(t *testing.T) {
	t.Parallel()
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for name, tc := range map[string]struct {
		err   error
		want  string
		final bool
	}{
		"no such name":   {op("dial", &net.DNSError{Err: "no such host", Name: "nothing.invalid", IsNotFound: true}), `the name "nothing.invalid" cannot be found`, true},
		"no answer":      {op("dial", &net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}), `the name "x" cannot be found`, false},
		"through socks":  {fmt.Errorf("socks connect tcp x:1->y:2: refused"), "the proxy cannot be used", false},
		"reset":          {op("read", errors.New("connection reset by peer")), "connection reset by peer", false},
		"raw bytes here": {errors.New("malformed HTTP response \"\x1b[2J\""), `\u001b[2J`, false},
	} {
		got := chatTransportError(tc.err)
		if got.Fault != faultUnreachable || !strings.Contains(got.Message, tc.want) || got.final != tc.final || !errors.Is(got, tc.err) {
			t.Errorf("%s: got %+v, want %q", name, got, tc.want)
		}
	}
}

// Whatever the words of a provider, the kind is right: the cases are what they really send.
func TestChatFaultOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		body   string
		want   chatFault
	}{
		{429, `{"error":{"message":"Rate limit reached for model x. Need more tokens? Upgrade at https://console.groq.com/settings/billing","type":"tokens","code":"rate_limit_exceeded"}}`, faultRate},
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, faultCredit},
		{429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}]`, faultRate},
		{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, faultCredit},
		{400, `{"error":{"message":"Billing hard limit has been reached","code":"billing_hard_limit_reached"}}`, faultCredit},
		{413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM)","code":"rate_limit_exceeded"}}`, faultContext},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, faultContext},
		{400, `{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed","status":"INVALID_ARGUMENT"}}`, faultContext},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError"}`, faultContext},
		{404, `{"error":{"message":"No endpoints found for x/y.","code":404}}`, faultModel},
		{400, `{"error":{"message":"The model grok-x does not exist or your team does not have access to it."}}`, faultModel},
		{400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}`, faultModel},
		{503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, faultOverloaded},
		{503, `{"error":{"message":"Loading model","type":"unavailable_error"}}`, faultOverloaded},
		{422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, faultRequest},
	} {
		if got := chatErrorOf(tc.status, []byte(tc.body)); got.Fault != tc.want {
			t.Errorf("%d %s: got %s, want %s", tc.status, tc.body, got.Fault, tc.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for _, tc := range []struct {
		seconds, ms string
		want        time.Duration
		ok          bool
	}{
		{"7", "", 7 * time.Second, true}, {" 1.5 ", "", 1500 * time.Millisecond, true}, {"0", "", 0, true}, {"", "250", 250 * time.Millisecond, true}, {"9", "250.5", 250500 * time.Microsecond, true},
		{"9", "soon", 9 * time.Second, true}, {"Fri, 02 Jan 2026 03:04:09 GMT", "", 9 * time.Second, true}, {"Fri, 02 Jan 2026 03:03:00 GMT", "", 0, true},
		{strings.Repeat("9", 400), "", httpRetryMax, true}, {"", "", 0, false}, {"-3", "", 0, false}, {"1e3", "", 0, false}, {"1.2.3", "", 0, false}, {".", "", 0, false}, {"NaN", "", 0, false},
	} {
		h := http.Header{}
		h.Set("Retry-After", tc.seconds)
		h.Set("retry-after-ms", tc.ms)
		if got, ok := retryAfter(h, now); got != tc.want || ok != tc.ok {
			t.Errorf("%q, %q: got %s, %v, want %s, %v", tc.seconds, tc.ms, got, ok, tc.want, tc.ok)
		}
	}
}
