// This file holds http_request: any method, with a body, the answer as text or saved to a file through the changes of the file tools, so that file_undo takes it back.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	httpRequestTime    = 30      // seconds of one http_request unless the call says otherwise
	httpRequestMaxTime = 300     // seconds, the most that it may say
	httpBodyMax        = 4 << 20 // characters of a body that is sent
	httpShownValue     = 500     // bytes of an answer's header that are shown
)

func (h httpTools) requestTool() tool {
	return tool{
		Name: "http_request", Family: "http",
		Description: "Send an HTTP request with any method, headers and body, as to a REST API, or download a file with save_to. The answer is a result whatever its status. Asks before it is sent.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["method","url"],"properties":{
"method":{"type":"string","enum":["GET","HEAD","POST","PUT","PATCH","DELETE","OPTIONS"],"description":"The method."},
"url":{"type":"string","minLength":1,"maxLength":%d,"description":"Address to call, with http:// or https://."},
"headers":{"type":"object","additionalProperties":{"type":"string"},"description":"Request headers; ${NAME} in a value stands for a secret of the vault or a variable of the environment."},
"body":{"type":"string","maxLength":%d,"description":"Body to send; ${NAME} as in headers, $${ for a plain ${."},
"save_to":{"type":"string","minLength":1,"description":"New file to save the answer to, relative to the workspace root; its folder must exist."},
"sha256":{"type":"string","pattern":"^[0-9a-fA-F]{64}$","description":"SHA-256 that the answer must have; with another one it fails and nothing is saved."},
"timeout_s":{"type":"integer","minimum":1,"maximum":%d,"description":"Seconds after which it is given up (default %d)."}}}`, webURLMax, httpBodyMax, httpRequestMaxTime, httpRequestTime)),
		Output: json.RawMessage(httpOutput), Hints: toolHints{Destructive: true},
		judge: h.judgeRequest,
		run:   h.request,
	}
}

// judgeRequest also tells where the answer is saved; such a call is granted only as it is.
func (h httpTools) judgeRequest(c toolCall) policyRequest {
	req := h.judge(c, policyRequest{Destructive: true})
	var args httpArgs
	if json.Unmarshal(c.Args, &args) != nil || args.SaveTo == "" {
		return req
	}
	req.Exact = true
	return judgePlace(h.files.workspace, args.SaveTo, req)
}

// request answers one http_request.
func (h httpTools) request(ctx context.Context, c toolCall) (toolResult, error) {
	args := httpArgs{Timeout: httpRequestTime}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	if args.Body != "" && (args.Method == http.MethodGet || args.Method == http.MethodHead) {
		return toolResult{}, errorf("body: a %s has none", args.Method)
	}
	limit := int64(httpGetBytes)
	if args.SaveTo != "" {
		limit = changeBodyMax
		if _, err := h.planSave(c, args.SaveTo, nil); err != nil { // before anything is sent
			return toolResult{}, errorf("save_to: %w", err)
		}
	}
	sent, cancel := context.WithTimeout(ctx, time.Duration(args.Timeout)*h.unit)
	defer cancel()
	f, err := h.fill(sent, args)
	if err != nil {
		return toolResult{}, err
	}
	a, b, err := h.call(sent, c, args, f, limit)
	if err != nil {
		return toolResult{}, maskedFault(f.mask, err)
	}
	r, err := h.answer(ctx, c, args, f, a, b)
	if err != nil {
		return r, maskedFault(f.mask, errorf("it was sent and answered with %d, but %w", a.StatusCode, err))
	}
	return r, nil
}

// answer tells what came back, or saves it.
func (h httpTools) answer(ctx context.Context, c toolCall, args httpArgs, f httpFilled, a *webAnswer, b webBody) (toolResult, error) {
	t := httpText{kind: webType(a.Header, b.Data)}
	saves := args.SaveTo != "" && a.StatusCode/100 == 2
	var err error
	if !saves {
		if t, err = readText(a, b, requestAs(t.kind)); err != nil {
			t.binary = true
		}
	}
	doc := newHTTPDoc(a, b, t)
	if doc.Headers = shownHeaders(a.Header); args.SHA256 != "" && a.StatusCode/100 == 2 || saves {
		if err := doc.check(args, b); err != nil {
			return toolResult{}, err
		}
	}
	var out textBuilder
	doc.head(&out, a, b)
	for _, name := range shownHeaderNames() {
		if v, ok := doc.Headers[name]; ok {
			fmt.Fprintf(&out, "%s: %s\n", name, v)
		}
	}
	switch {
	case saves:
		if err := h.save(ctx, c, args.SaveTo, b.Data, &doc); err != nil {
			return toolResult{}, err
		}
		fmt.Fprintf(&out, "saved to %s: %d bytes, sha256 %s\n", visibleLine(doc.Path), len(b.Data), doc.SHA256)
		if doc.Change != "" {
			fmt.Fprintf(&out, "change %s; file_undo takes it back\n", doc.Change)
		}
	case t.binary:
		out.WriteString("\nits body is no text that tai can show; save_to keeps it as a file\n")
	default:
		if args.SaveTo != "" {
			out.WriteString("nothing was saved, as it is no answer of success\n")
		}
		fmt.Fprintf(&out, "\n%s\n", t.text)
		doc.tail(&out, b, t, "save_to keeps all of it")
	}
	return doc.result(out.String(), f.mask, args.SaveTo != "" && !saves)
}

// requestAs leaves a page as it is: what an API answers is shown as it came, JSON apart, which is laid out.
func requestAs(kind string) string {
	if kind == "text/html" || kind == "application/xhtml+xml" {
		return "raw"
	}
	return ""
}

// check holds the whole answer to the bound and the checksum.
func (d *httpDoc) check(args httpArgs, b webBody) error {
	switch {
	case b.Cut:
		return errorf("it has more than %d bytes; nothing was saved", len(b.Data))
	case b.Fault != nil:
		return errorf("its answer broke off after %d bytes (%w); nothing was saved", len(b.Data), b.Fault)
	}
	if d.SHA256 = sha256Hex(b.Data); args.SHA256 != "" && !strings.EqualFold(d.SHA256, args.SHA256) {
		return errorf("sha256: the answer has %s, not %s; nothing was saved", d.SHA256, strings.ToLower(args.SHA256))
	}
	return nil
}

// save puts the answer in place, by a rename, as a change that can be undone.
func (h httpTools) save(ctx context.Context, c toolCall, path string, data []byte, doc *httpDoc) error {
	p, change, err := h.files.run(ctx, c, func() (*changePlan, error) { return h.planSave(c, path, data) })
	if err != nil {
		return errorf("it was not saved: %w", err)
	}
	doc.Path, doc.Change = h.files.showPath(p.steps[0].Path), change
	return nil
}

// planSave plans a new file; one that is there is never written over.
func (h httpTools) planSave(c toolCall, path string, data []byte) (*changePlan, error) {
	p, st, folders, err := h.files.target(c, path)
	switch {
	case err != nil:
		return nil, err
	case len(folders) > 0:
		return nil, errorf("%s: its folder does not exist", visibleLine(path))
	case st.Kind != "":
		return nil, errorf("%s: exists already; choose another name, or delete it before", visibleLine(path))
	case p.Rel == ".":
		return nil, newError("names no file")
	}
	return planFor("http_request", p, st, nil, string(data))
}

// shownHeaderNames are the headers of an answer that a caller can use. Cookies are none: they are credentials, and none is kept.
//
//go:noinline for size: it is called in many places
func shownHeaderNames() []string {
	return []string{"Location", "Etag", "Last-Modified", "Retry-After", "Link", "Allow", "Www-Authenticate", "Content-Disposition", "Content-Range", "X-Request-Id", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit", "Ratelimit-Policy"}
}

func shownHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range shownHeaderNames() {
		if v := h.Get(name); v != "" {
			out[name] = visibleLine(clip(v, httpShownValue))
		}
	}
	return out
}
