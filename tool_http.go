// This file holds http_get, and what http_request shares with it: which host a call goes to and what it sends there, as the policy is told, the headers with their
// secrets, and an answer as text. Addresses are guarded by http_fetch.go; who may go where is the policy's matter.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	httpGetTime    = 30 * time.Second // one http_get, with its redirects
	httpGetBytes   = 1 << 20          // bytes of an answer, unpacked, unless the call says otherwise
	httpGetMax     = 10 << 20         // bytes, the most that it may say
	httpFaultText  = 2000             // bytes of an answer's text that a failure repeats
	httpHeadersMax = 50               // headers that a call may send
	httpValueMax   = 8 << 10          // bytes of one of them
)

// httpTools is what both tools work with. Judge foresees what the policy makes of a call; Env and Secret give what ${NAME} stands for.
type httpTools struct {
	web     *webFetcher
	files   *fileChanger
	foresee func(policyRequest) policyForecast
	env     func(string) (string, bool)
	secret  func(ctx context.Context, name string) (secret, error)
	unit    time.Duration // of timeout_s
}

// webTools gives http_get and http_request. secret gives errNotFound for a name that the vault does not have.
func webTools(web *webFetcher, files *fileChanger, foresee func(policyRequest) policyForecast, env func(string) (string, bool), secret func(context.Context, string) (secret, error)) []tool {
	h := httpTools{web: web, files: files, foresee: foresee, env: env, secret: secret, unit: time.Second}
	return []tool{{
		Name: "http_get", Family: "http",
		Description: "Fetch a web page or another URL over http or https and give its text: HTML as Markdown, JSON laid out, other text as it is. Follows redirects, bounded in size and time. A host that is new to the session is asked about.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["url"],"properties":{
"url":{"type":"string","minLength":1,"maxLength":%d,"description":"Address to fetch, with http:// or https://."},
"headers":{"type":"object","additionalProperties":{"type":"string"},"description":"Request headers; ${NAME} in a value stands for a secret of the vault or a variable of the environment."},
"as":{"type":"string","enum":["markdown","text","raw"],"description":"What HTML becomes: markdown (default), text without marks, or raw, which also leaves JSON as it is."},
"max_bytes":{"type":"integer","minimum":1,"maximum":%d,"description":"Bytes to read at most, after unpacking (default %d)."}}}`, webURLMax, httpGetMax, httpGetBytes)),
		Output: json.RawMessage(httpOutput), Hints: toolHints{ReadOnly: true, Idempotent: true},
		judge: func(c toolCall) policyRequest { return h.judge(c, policyRequest{}) },
		run:   h.get,
	}, h.requestTool()}
}

// httpOutput is the outputSchema of both tools.
const httpOutput = `{"type":"object","properties":{
"url":{"type":"string","description":"The address that answered."},
"status":{"type":"integer","description":"The status code."},
"content_type":{"type":"string","description":"The media type of the answer."},
"charset":{"type":"string","description":"The encoding that its text was in."},
"title":{"type":"string","description":"The title of a page."},
"bytes":{"type":"integer","description":"Bytes that were read, unpacked."},
"cut":{"type":"boolean","description":"There was more than the bound."},
"left_out":{"type":"integer","description":"Bytes that were not read, where that is known."},
"redirects":{"type":"integer","description":"Redirects that were followed."},
"location":{"type":"string","description":"Where a redirect leads that was not followed."},
"headers":{"type":"object","description":"Headers of the answer that matter to a caller."},
"path":{"type":"string","description":"The file that the answer was saved to."},
"sha256":{"type":"string","description":"SHA-256 of the answer, where it was saved or checked."},
"change":{"type":"string","description":"Id of the change for file_undo."},` + toolRecordSchema + `}}`

type httpArgs struct {
	Method   string
	URL      string
	Headers  map[string]string
	Body     string
	As       string
	MaxBytes int64  `json:"max_bytes"`
	SaveTo   string `json:"save_to"`
	SHA256   string
	Timeout  int `json:"timeout_s"`
}

// judge adds to req which host the call goes to and which secrets go along. An address that is none is left to the tool, which fails before it calls anything.
func (h httpTools) judge(c toolCall, req policyRequest) policyRequest {
	var args httpArgs
	if json.Unmarshal(c.Args, &args) != nil {
		return req
	}
	u, err := parseWebURL(args.URL)
	if err != nil {
		return req
	}
	req.Net = netTouch{Host: hostKey(u), URL: u.String(), Reach: hostReach(u.Hostname()), Secrets: httpReferences(args)}
	for _, name := range req.Net.Secrets {
		req.Danger = append(req.Danger, "the value of "+visibleLine(name)+" goes to "+visibleLine(req.Net.Host))
	}
	if u.Scheme == "http" && req.Net.Reach != reachLoopback {
		req.Danger = append(req.Danger, "plain http: everybody on the way can read and change it")
	}
	return req
}

// httpReferences are the names that ${NAME} in headers and body refers to, sorted.
func httpReferences(args httpArgs) []string {
	names := map[string]bool{}
	for _, text := range append(slices.Collect(maps.Values(args.Headers)), args.Body) {
		collectRefs(newRefText(text), 0, len(text), 0, func(r refSpan, _ bool) {
			if r.kind == refName || r.kind == refInput {
				names[r.name] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// hop says why the policy does not let a running call go on to an address, "" if it does. Nobody is asked amid a call.
func (h httpTools) hop(c toolCall) func(*url.URL, netReach) string {
	return func(u *url.URL, reach netReach) string {
		args := append(appendJSONString([]byte(`{"url":`), u.String()), '}')
		f := h.foresee(policyRequest{Tool: c.Name, Args: args, Person: c.Person, Net: netTouch{Host: hostKey(u), URL: u.String(), Reach: reach}})
		if f.Decision == forecastAllow {
			return ""
		}
		return cmp.Or(f.Reason, f.Rule)
	}
}

// httpFilled is what a call sends, with the values of its secrets in place.
type httpFilled struct {
	header http.Header
	body   string
	mask   *redactor
}

// fill checks the headers and fills in what ${NAME} stands for: the environment first, then the vault, as in entries of servers.
func (h httpTools) fill(ctx context.Context, args httpArgs) (f httpFilled, err error) {
	var values []namedSecret
	var fault error
	keep := func(name, value string, ok bool) (string, bool) {
		if ok {
			values = append(values, namedSecret{name, secret(value)})
		}
		return value, ok
	}
	x := &expander{env: func(name string) (string, bool) {
		v, ok := h.env(name)
		return keep(name, v, ok)
	}, vault: func(name string) (string, bool) {
		s, err := h.secret(ctx, name)
		if err != nil && !errors.Is(err, errNotFound) {
			fault = joinErrors(fault, err)
		}
		return keep(name, s.reveal(), err == nil)
	}}
	if len(args.Headers) > httpHeadersMax {
		return f, errorf("headers: %d of them, at most %d", len(args.Headers), httpHeadersMax)
	}
	f.header = http.Header{}
	for _, name := range slices.Sorted(maps.Keys(args.Headers)) {
		if err := httpHeaderName(name, f.header); err != nil {
			return f, err
		}
		value := strings.TrimSpace(x.text("headers."+visibleLine(name), args.Headers[name]))
		if len(value) > httpValueMax || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return f, errorf("headers.%s: the value holds a line break or another control character, or has over %d bytes", visibleLine(name), httpValueMax)
		}
		f.header.Set(name, value)
	}
	f.body = x.text("body", args.Body)
	f.mask = newRedactor(values)
	if fault != nil {
		return f, fault
	}
	if len(x.faults) > 0 {
		return f, errorf("%s; tai secret set stores a secret, and $${ stands for a plain ${", strings.Join(x.faults, "; "))
	}
	return f, nil
}

// httpHeaderName refuses what is no name of a header (RFC 9110, 5.1), stands twice, or is the client's own matter.
func httpHeaderName(name string, have http.Header) error {
	token := name != ""
	for i := range len(name) {
		c := name[i]
		token = token && (c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0)
	}
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !token:
		return errorf("headers: %s is no name of a header", quoteShown(clip(name, 100)))
	case have[canonical] != nil:
		return errorf("headers: %s stands twice", canonical)
	case strings.HasPrefix(canonical, "Proxy-"):
		return errorf("headers: %s is not sent", canonical)
	}
	switch canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect", "Accept-Encoding":
		return errorf("headers: %s is set by tai itself", canonical)
	}
	return nil
}

// call sends what was filled in and gives the last answer with its body, of which max bytes are read.
func (h httpTools) call(ctx context.Context, c toolCall, args httpArgs, f httpFilled, max int64) (*webAnswer, webBody, error) {
	u, err := parseWebURL(args.URL)
	if err != nil {
		return nil, webBody{}, errorf("url: it %w", err)
	}
	judge := h.hop(c)
	if names := httpReferences(args); len(names) > 0 && u.Scheme == "http" && c.reach != reachLoopback && judge(u, reachMetadata) != "" {
		return nil, webBody{}, errorf("url: %s would cross the network unencrypted; use https", strings.Join(names, ", "))
	}
	header := f.header.Clone()
	header.Set("Accept-Encoding", "gzip, deflate")
	kept := []string{"Accept-Encoding"}
	for _, def := range [][2]string{{"User-Agent", "tai/" + version}, {"Accept", "text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.5"}} {
		if header.Get(def[0]) == "" {
			header.Set(def[0], def[1])
		}
	}
	for _, name := range []string{"Accept", "Accept-Language", "User-Agent"} {
		if !strings.Contains(args.Headers[httpGivenName(args.Headers, name)], "${") {
			kept = append(kept, name)
		}
	}
	a, err := h.web.fetch(ctx, webCall{Method: args.Method, URL: u, Header: header, Body: f.body, Reach: c.reach, Kept: kept, Judge: judge})
	if err != nil {
		return nil, webBody{}, err
	}
	defer a.Body.Close()
	b, err := readWebBody(a.Response, max)
	if err != nil {
		return nil, webBody{}, errorf("%s: %w", visibleLine(hostKey(a.URL)), err)
	}
	return a, b, nil
}

// httpGivenName is the spelling in which a header was given.
func httpGivenName(headers map[string]string, canonical string) string {
	for name := range headers {
		if http.CanonicalHeaderKey(name) == canonical {
			return name
		}
	}
	return ""
}

// httpText is an answer's body as text.
type httpText struct {
	text, kind, charset, title string
	binary, short              bool // short: the text of a page would be far longer than the page
}

// readText decodes a body, and turns a page into what as says.
func readText(a *webAnswer, b webBody, as string) (httpText, error) {
	t := httpText{kind: webType(a.Header, b.Data)}
	data := b.Data
	if b.Cut || b.Fault != nil {
		data = trimPartRune(data)
	}
	name, err := findCharset(data, a.Header.Get("Content-Type"))
	if binaryType(t.kind) || err == nil && name == charsetLatin && isBinary(b.Data[:min(len(b.Data), binarySniff)]) {
		t.binary = true
		return t, nil
	}
	if err != nil {
		return t, err
	}
	t.charset, t.text = name, decodeCharset(data, name)
	if strings.IndexByte(t.text[:min(len(t.text), binarySniff)], 0) >= 0 {
		t.binary, t.text, t.charset = true, "", ""
		return t, nil
	}
	switch {
	case as == "raw":
	case t.kind == "text/html" || t.kind == "application/xhtml+xml":
		page := readHTML(t.text, a.URL, as == "text")
		t.text, t.title, t.short = page.Text, page.Title, page.Cut
	case t.kind == "application/json" || strings.HasSuffix(t.kind, "+json"):
		var out bytes.Buffer
		if !b.Cut && json.Indent(&out, []byte(t.text), "", "  ") == nil {
			t.text = out.String()
		}
	}
	return t, nil
}

// binaryType reports media types that are no text whatever their bytes.
func binaryType(kind string) bool {
	major, minor, _ := strings.Cut(kind, "/")
	switch major {
	case "image":
		return minor != "svg+xml"
	case "audio", "video", "font":
		return true
	}
	switch kind {
	case "application/pdf", "application/zip", "application/gzip", "application/x-tar", "application/wasm", "application/vnd.sqlite3", "application/java-archive":
		return true
	}
	return false
}

// get answers one http_get.
func (h httpTools) get(ctx context.Context, c toolCall) (toolResult, error) {
	args := httpArgs{Method: http.MethodGet, MaxBytes: httpGetBytes}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, httpGetTime)
	defer cancel()
	f, err := h.fill(ctx, args)
	if err != nil {
		return toolResult{}, err
	}
	a, b, err := h.call(ctx, c, args, f, args.MaxBytes)
	if err != nil {
		return toolResult{}, maskedFault(f.mask, err)
	}
	t, err := readText(a, b, args.As)
	if err != nil {
		return toolResult{}, maskedFault(f.mask, err)
	}
	doc := newHTTPDoc(a, b, t)
	var out textBuilder
	doc.head(&out, a, b)
	switch ok := a.StatusCode/100 == 2; {
	case t.binary:
		out.WriteString("\nthis is no text; http_request with save_to keeps it as a file\n")
	case !ok:
		fmt.Fprintf(&out, "\n%s\n", clip(t.text, httpFaultText))
		doc.Title = ""
	default:
		fmt.Fprintf(&out, "\n%s\n", t.text)
		doc.tail(&out, b, t, "max_bytes can be more")
	}
	return doc.result(out.String(), f.mask, a.StatusCode/100 != 2)
}

// maskedFault takes the secrets of a call out of what went wrong with it. The cause is kept where the caller looks for it.
func maskedFault(mask *redactor, err error) error {
	text := mask.text(err.Error())
	if text == err.Error() {
		return err
	}
	return newError(text)
}

// httpDoc is the structured result.
type httpDoc struct {
	URL       string            `json:"url"`
	Status    int               `json:"status"`
	Type      string            `json:"content_type,omitempty"`
	Charset   string            `json:"charset,omitempty"`
	Title     string            `json:"title,omitempty"`
	Bytes     int               `json:"bytes"`
	Cut       bool              `json:"cut,omitempty"`
	LeftOut   int64             `json:"left_out,omitempty"`
	Redirects int               `json:"redirects,omitempty"`
	Location  string            `json:"location,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Path      string            `json:"path,omitempty"`
	SHA256    string            `json:"sha256,omitempty"`
	Change    string            `json:"change,omitempty"`
}

func newHTTPDoc(a *webAnswer, b webBody, t httpText) httpDoc {
	d := httpDoc{URL: a.URL.String(), Status: a.StatusCode, Type: visibleLine(clip(t.kind, 100)), Charset: t.charset, Title: t.title, Bytes: len(b.Data), Cut: b.Cut, LeftOut: max(b.Left, 0), Redirects: a.Redirects}
	if a.Next != nil {
		d.Location = a.Next.String()
	}
	return d
}

// head writes the lines before the text.
func (d httpDoc) head(out *textBuilder, a *webAnswer, b webBody) {
	about := cmp.Or(d.Type, "no type")
	if d.Charset != "" {
		about += ", " + d.Charset
	}
	fmt.Fprintf(out, "%s %s (%s, %d bytes)\n", strings.TrimSpace(fmt.Sprintf("%d %s", d.Status, http.StatusText(d.Status))), visibleLine(d.URL), about, d.Bytes)
	if d.Redirects > 0 {
		fmt.Fprintf(out, "after %s\n", plural(d.Redirects, "redirect"))
	}
	if len(a.Dropped) > 0 {
		fmt.Fprintf(out, "not sent on to another origin: %s\n", visibleLine(strings.Join(a.Dropped, ", ")))
	}
	if a.Stopped != "" {
		fmt.Fprintf(out, "the redirect is not followed: %s\n", visibleLine(a.Stopped))
		if d.Location != "" {
			fmt.Fprintf(out, "it leads to %s ; call that address if it is wanted\n", visibleLine(d.Location))
		}
	}
	if d.Title != "" {
		fmt.Fprintf(out, "title: %s\n", visibleLine(d.Title))
	}
	if b.Fault != nil {
		fmt.Fprintf(out, "the answer broke off: %s\n", visibleLine(b.Fault.Error()))
	}
}

// tail says what was left out.
func (d httpDoc) tail(out *textBuilder, b webBody, t httpText, more string) {
	switch {
	case b.Cut && b.Left > 0:
		fmt.Fprintf(out, "[the first %d bytes; %d left out; %s]\n", len(b.Data), b.Left, more)
	case b.Cut:
		fmt.Fprintf(out, "[the first %d bytes, unpacked; how much is left out is not known; %s]\n", len(b.Data), more)
	case t.short:
		out.WriteString("[the page would give far more text than it has bytes; its end is left out; as raw gives it]\n")
	}
}

// result masks what the call itself sent along.
func (d httpDoc) result(text string, mask *redactor, failed bool) (toolResult, error) {
	structured, err := json.Marshal(d)
	if err != nil {
		return toolResult{}, errorf("write the answer: %w", err)
	}
	return toolResult{Text: mask.text(text), Structured: json.RawMessage(mask.text(string(structured))), IsError: failed}, nil
}
