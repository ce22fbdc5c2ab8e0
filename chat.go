// This file talks to the model endpoint: it posts a conversation, reads the reply as it streams in, waits and tries again where that is
// safe. It runs no tool, keeps no history and knows no wire: chat_openai.go and chat_anthropic.go do.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	chatTimeout   = 600 * time.Second      // one completion, its retries included
	chatMaxBody   = 10 << 20               // bytes of one reply, streamed or whole
	chatMaxError  = 64 << 10               // bytes of an error body that are read
	chatTries     = 4                      // requests for one completion, the first included
	chatFirstWait = 500 * time.Millisecond // before the second request; doubled for each further one
	chatMaxWait   = 60 * time.Second       // the longest wait an endpoint may ask for before tai gives up instead
)

// chatClient is one model endpoint. It may be used by several goroutines at a time.
type chatClient struct {
	http     *http.Client // the caller's; follows no redirects
	timeout  time.Duration
	wait     func(ctx context.Context, d time.Duration) error
	now      func() time.Time
	redactor *redactor // takes the key out of what the endpoint says

	mu       sync.Mutex
	endpoint chatEndpoint    // with what its refusals have taught
	told     map[string]bool // tools kept back that the person was told of
}

func newChatClient(e chatEndpoint, client *http.Client) *chatClient {
	return &chatClient{
		endpoint: e, http: client, timeout: chatTimeout, wait: httpWait, now: time.Now, told: map[string]bool{},
		redactor: newRedactor([]namedSecret{{Name: strings.TrimPrefix(e.KeyFrom, "secret "), Value: e.Key}}),
	}
}

// complete asks for one reply and gives each piece of its text to onDelta as it comes, from the caller's goroutine. The request is sent
// again, a bounded number of times, after a connection fault, 429 or 5xx, or in another form after a refusal that asks for it, as long as no
// byte of a reply has come; never after that. Errors are *chatError, or ctx's.
func (c *chatClient) complete(ctx context.Context, r chatRequest, onDelta func(chatDelta)) (chatReply, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	e := c.current()
	r.Tools = c.fit(e, r.Tools, onDelta)
	for try := 1; ; try++ {
		reply, retryAfter, err := c.attempt(ctx, e, r, onDelta)
		if err == nil {
			return reply, nil
		}
		if outer.Err() != nil {
			return reply, errorf("model reply: %w", context.Cause(outer))
		}
		if learned, ok := e.learn(err); ok && try < chatTries {
			e = learned
			c.keep(learned)
			continue
		}
		fault := c.explain(ctx, e, err)
		if retryAfter < 0 || fault.Fault == faultCredit || try == chatTries || ctx.Err() != nil {
			return reply, fault
		}
		d := max(retryAfter, chatBackoff(try))
		if d > chatMaxWait {
			fault.Hint = fmt.Sprintf("it asks to wait for %s; try again then", d.Round(time.Second))
			return reply, fault
		}
		onDelta(chatDelta{Notice: fmt.Sprintf("%s; trying again in %s", fault.Message, d.Round(100*time.Millisecond))})
		if err := c.wait(ctx, d); err != nil {
			if outer.Err() != nil {
				return reply, errorf("model reply: %w", context.Cause(outer))
			}
			return reply, fault
		}
	}
}

// current gives the endpoint as it is known by now.
func (c *chatClient) current() chatEndpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoint
}

// keep remembers what a refusal has taught, for the requests to come.
func (c *chatClient) keep(e chatEndpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoint = e
}

// fit gives the tools as this endpoint takes them, and tells once of each that it does not take.
func (c *chatClient) fit(e chatEndpoint, tools []chatTool, onDelta func(chatDelta)) []chatTool {
	fitted := make([]chatTool, 0, len(tools))
	for _, t := range tools {
		f, err := e.fitTool(t)
		if err == nil {
			fitted = append(fitted, f)
			continue
		}
		c.mu.Lock()
		told := c.told[t.Name]
		c.told[t.Name] = true
		c.mu.Unlock()
		if !told {
			onDelta(chatDelta{Notice: "kept back from the model: " + err.Error()})
		}
	}
	return fitted
}

// learn gives the endpoint as a refusal asks for it. ok is false where it asks for nothing that tai can change.
func (e chatEndpoint) learn(err error) (_ chatEndpoint, ok bool) {
	fault, is := errors.AsType[*chatError](err)
	if !is || fault.Status < 400 || fault.Status >= 500 || fault.Fault == faultKey || fault.Fault == faultCredit {
		return e, false
	}
	before, text := e, strings.ToLower(fault.Message)
	limit := chatTokenLimit(text)
	switch {
	case strings.Contains(text, "stream_options"):
		e.plainUsage = true
	case strings.Contains(text, "max_completion_tokens") && strings.Contains(text, "max_tokens") && e.Wire != wireAnthropic:
		e.newMaxTokens = !strings.Contains(text, "use 'max_tokens'")
	case strings.Contains(text, "reasoning_effort") && strings.Contains(text, "none"):
		e.noEffort = true
	case strings.Contains(text, "reasoning_content") && e.Wire != wireAnthropic:
		e.noThinking = true
	case strings.Contains(text, "thought_signature"):
		e.signedCalls = true
	case strings.Contains(text, "length of 9"):
		e.shortIDs = true
	case limit > 0 && (e.MaxTokens == 0 || limit < e.MaxTokens):
		e.MaxTokens = limit
	}
	return e, e != before
}

// chatTokenLimit reads the most tokens that a model gives out of a refusal such as "max_tokens: 32000 > 8192, which is the maximum…".
func chatTokenLimit(text string) int {
	_, rest, ok := strings.Cut(text, "max_tokens: ")
	if !ok {
		return 0
	}
	_, rest, ok = strings.Cut(rest, " > ")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if !ok || end < 0 || !strings.Contains(rest, "maximum") {
		return 0
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 0
	}
	return n
}

// request makes the request of one attempt.
func (e chatEndpoint) request(ctx context.Context, r chatRequest) (*http.Request, error) {
	path := "/chat/completions"
	if e.Wire == wireAnthropic {
		path = "/messages"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.BaseURL+path, bytes.NewReader(appendChatRequest(nil, e, r)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", httpTypeJSON)
	req.Header.Set("Accept", httpTypeSSE+", "+httpTypeJSON)
	req.Header.Set("User-Agent", "tai/"+version)
	switch {
	case e.Wire == wireAnthropic:
		req.Header.Set("Anthropic-Version", "2023-06-01")
		if e.Key != "" {
			req.Header.Set("X-Api-Key", e.Key.reveal())
		}
	case e.Key != "":
		req.Header.Set(headerAuthorize, "Bearer "+e.Key.reveal())
	}
	return req, nil
}

// appendChatRequest writes the body of a streaming request in the endpoint's form.
func appendChatRequest(dst []byte, e chatEndpoint, r chatRequest) []byte {
	if e.Wire == wireAnthropic {
		return appendAnthropicRequest(dst, e, r)
	}
	return appendOpenAIRequest(dst, e, r)
}

// newChatReader gives the reader of the endpoint's replies.
func newChatReader(w chatWire) chatReader {
	if w == wireAnthropic {
		return &anthropicReader{}
	}
	return &openAIReader{}
}

// attempt is one request. retryAfter is negative where it must not be sent again, else the wait that the endpoint asks for (0 if it does
// not say). On an error reply holds the text that had come.
func (c *chatClient) attempt(ctx context.Context, e chatEndpoint, r chatRequest, onDelta func(chatDelta)) (reply chatReply, wait time.Duration, err error) {
	req, err := e.request(ctx, r)
	if err != nil {
		return chatReply{}, -1, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		fault := chatTransportError(err)
		if fault.final {
			wait = -1
		}
		return chatReply{}, wait, fault
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return chatReply{}, c.retryAfter(resp), chatStatusError(resp)
	}
	reply, err = readChatReply(resp, newChatReader(e.Wire), onDelta)
	return reply, -1, err
}

// readChatReply reads a reply that comes as events, or whole from an endpoint that does not stream.
func readChatReply(resp *http.Response, reader chatReader, onDelta func(chatDelta)) (chatReply, error) {
	kind := mediaType(resp.Header)
	take := func(b []byte) (bool, error) {
		text, more, err := reader.take(b)
		if text != "" {
			onDelta(chatDelta{Text: text})
		}
		return more, err
	}
	body, err := decodedBody(resp)
	limited := &io.LimitedReader{R: body, N: chatMaxBody + 1}
	switch {
	case err != nil:
	case kind == httpTypeSSE:
		err = readSSE(limited, chatMaxBody, func(ev sseEvent) (bool, error) { return take([]byte(ev.Data)) })
	default:
		var b []byte
		if b, err = io.ReadAll(limited); err == nil {
			_, err = take(b)
		}
	}
	if limited.N <= 0 {
		err = errorf("the reply is over %d bytes", chatMaxBody)
	}
	if reader.over() && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // cut after the end of the reply: only the usage is lost
	}
	var reply chatReply
	if err == nil {
		reply, err = reader.finish()
	}
	reply.Streamed = kind == httpTypeSSE
	if err == nil {
		return reply, nil
	}
	reply = reader.partial()
	if _, ok := errors.AsType[*chatError](err); ok {
		return reply, err
	}
	if kind == "text/html" {
		err = newError(chatWebPage)
	}
	return reply, &chatError{Fault: faultReply, Status: resp.StatusCode, Message: chatReason(err), cause: err}
}

// chatStatusError reads an answer other than 200.
func chatStatusError(resp *http.Response) *chatError {
	var text []byte
	body, err := decodedBody(resp)
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(body, chatMaxError))
	}
	if err != nil {
		text = nil // the status says enough
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		to := clip(visibleLine(resp.Header.Get("Location")), chatMaxMessage)
		return &chatError{Fault: faultRequest, Status: resp.StatusCode, Message: fmt.Sprintf("HTTP %d: the address has moved to %q", resp.StatusCode, to)}
	}
	return chatErrorOf(resp.StatusCode, text)
}

// retryAfter gives the wait that an answer asks for which may be asked for again; negative for any other. Some endpoints say themselves which
// those are.
func (c *chatClient) retryAfter(resp *http.Response) time.Duration {
	again := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode >= 500
	if !again || resp.Header.Get("X-Should-Retry") == "false" {
		return -1
	}
	d, _ := retryAfter(resp.Header, c.now())
	return d
}

// explain gives err as a *chatError that names the endpoint, with a hint and without the key.
func (c *chatClient) explain(ctx context.Context, endpoint chatEndpoint, err error) *chatError {
	e := &chatError{Fault: faultReply, Message: err.Error(), cause: err}
	if known, ok := errors.AsType[*chatError](err); ok {
		e = &chatError{Fault: known.Fault, Status: known.Status, Message: known.Message, Hint: known.Hint, cause: err}
	}
	if ctx.Err() != nil {
		e.Fault, e.Message = faultUnreachable, fmt.Sprintf("no complete reply within %s", c.timeout)
		if e.Status > 0 {
			e.Fault = faultOverloaded // it is there, and too slow
		}
	}
	e.Message = c.redactor.text(fmt.Sprintf("model endpoint %s: %s", endpoint.Name, e.Message))
	if e.Hint == "" {
		e.Hint = endpoint.hint(e)
	}
	e.Hint = c.redactor.text(e.Hint)
	return e
}

// hint says the way out of a fault.
func (e chatEndpoint) hint(fault *chatError) string {
	switch fault.Fault {
	case faultKey:
		if e.KeyFrom == "" {
			return "the endpoint at " + e.BaseURL + " wants a key; set TAI_API_KEY beside TAI_BASE_URL, or the provider's own variable; tai model set has --key"
		}
		if name, ok := strings.CutPrefix(e.KeyFrom, "secret "); ok {
			return "check the secret " + name + ": tai secret set " + quoteWord(name) + " stores another value"
		}
		return "check " + e.KeyFrom
	case faultCredit:
		return "the account of " + cmp.Or(e.KeyFrom, e.BaseURL) + " has no credit left"
	case faultModel:
		return fmt.Sprintf("the model asked for is %q; set TAI_MODEL, or tai model set, to one that %s has", visibleLine(e.Model), e.BaseURL)
	case faultContext:
		return "start a new conversation, or use a model with a larger window"
	case faultRate, faultOverloaded:
		return "try again later"
	case faultUnreachable:
		if u, err := url.Parse(e.BaseURL); err == nil && isLoopbackHost(u.Hostname()) {
			return "is the server at " + e.BaseURL + " started?"
		}
		return "is " + e.BaseURL + " the right address, and can this machine reach it?"
	}
	if strings.Contains(strings.ToLower(fault.Message), "support tool") {
		return "this model calls no tools; tai model list shows others"
	}
	if e.Wire == wireAnthropic {
		return "is " + e.BaseURL + " the address of an API like Anthropic's Messages?"
	}
	return "is " + e.BaseURL + " the address of an OpenAI-compatible API?"
}

// chatBackoff is the wait after the given try: doubled each time, with up to a fourth more so that clients do not come back together.
func chatBackoff(try int) time.Duration {
	d := chatFirstWait << (try - 1)
	return d + rand.N(d/4)
}
