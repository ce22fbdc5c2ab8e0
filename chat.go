// This file talks to the model endpoint: it posts a conversation, reads the reply as it streams in, waits and tries again where that is
// safe. It runs no tool and keeps no history.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
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
	endpoint chatEndpoint
	http     *http.Client // the caller's; follows no redirects
	timeout  time.Duration
	wait     func(ctx context.Context, d time.Duration) error
	now      func() time.Time
	redactor *redactor // takes the key out of what the endpoint says
}

func newChatClient(e chatEndpoint, client *http.Client) *chatClient {
	return &chatClient{
		endpoint: e, http: client, timeout: chatTimeout, wait: httpWait, now: time.Now,
		redactor: newRedactor([]namedSecret{{Name: e.KeyFrom, Value: e.Key}}),
	}
}

// complete asks for one reply and gives each piece of its text to onDelta as it comes, from the caller's goroutine. The request is sent
// again, a bounded number of times, after a connection fault, 429 or 5xx as long as no byte of a reply has come; never after that.
// Errors are *chatError, or ctx's.
func (c *chatClient) complete(ctx context.Context, r chatRequest, onDelta func(chatDelta)) (chatReply, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body := appendChatRequest(nil, c.endpoint, r)
	for try := 1; ; try++ {
		reply, retryAfter, err := c.attempt(ctx, body, onDelta)
		if err == nil {
			return reply, nil
		}
		if outer.Err() != nil {
			return reply, fmt.Errorf("model reply: %w", context.Cause(outer))
		}
		fault := c.explain(ctx, err)
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
			return reply, fault
		}
	}
}

// attempt is one request. retryAfter is negative where it must not be sent again, else the wait that the endpoint asks for (0 if it does
// not say). On an error reply holds the text that had come.
func (c *chatClient) attempt(ctx context.Context, body []byte, onDelta func(chatDelta)) (reply chatReply, retryAfter time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint.BaseURL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return chatReply{}, -1, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	if c.endpoint.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.endpoint.Key.reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			retryAfter = -1
		}
		return chatReply{}, retryAfter, &chatError{Fault: faultUnreachable, Message: chatReason(err), cause: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return chatReply{}, c.retryAfter(resp), chatStatusError(resp)
	}
	reply, err = readChatReply(resp, onDelta)
	return reply, -1, err
}

// readChatReply reads a reply that comes as events, or whole from an endpoint that does not stream.
func readChatReply(resp *http.Response, onDelta func(chatDelta)) (chatReply, error) {
	limited := &io.LimitedReader{R: resp.Body, N: chatMaxBody + 1}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	a := &chatAssembler{}
	take := func(b []byte) error {
		text, err := a.chunk(b)
		if text != "" {
			onDelta(chatDelta{Text: text})
		}
		return err
	}
	var err error
	if kind == "text/event-stream" {
		err = readSSE(limited, chatMaxBody, func(ev sseEvent) (bool, error) {
			if strings.TrimSpace(ev.Data) == "[DONE]" {
				a.done()
				return false, nil
			}
			return true, take([]byte(ev.Data))
		})
	} else {
		var b []byte
		if b, err = io.ReadAll(limited); err == nil {
			err = take(b)
		}
	}
	if limited.N <= 0 {
		err = fmt.Errorf("the reply is over %d bytes", chatMaxBody)
	}
	if a.stopped && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // cut after the end of the reply: only the usage is lost
	}
	var reply chatReply
	if err == nil {
		reply, err = a.finish()
	}
	if err == nil {
		return reply, nil
	}
	reply = chatReply{Text: string(a.text), Usage: a.reply.Usage}
	if _, ok := errors.AsType[*chatError](err); ok {
		return reply, err
	}
	if kind == "text/html" {
		err = errors.New("the address answers with a web page, not with an API")
	}
	return reply, &chatError{Fault: faultReply, Status: resp.StatusCode, Message: err.Error(), cause: err}
}

// chatStatusError reads an answer other than 200.
func chatStatusError(resp *http.Response) *chatError {
	body, err := io.ReadAll(io.LimitReader(resp.Body, chatMaxError))
	if err != nil {
		body = nil // the status says enough
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		to := clip(visibleLine(resp.Header.Get("Location")), chatMaxMessage)
		return &chatError{Fault: faultRequest, Status: resp.StatusCode, Message: fmt.Sprintf("HTTP %d: the address has moved to %q", resp.StatusCode, to)}
	}
	return chatErrorOf(resp.StatusCode, body)
}

// retryAfter reads the Retry-After header (RFC 9110, 10.2.3) of an answer that may be asked for again; negative for any other.
func (c *chatClient) retryAfter(resp *http.Response) time.Duration {
	if s := resp.StatusCode; s != http.StatusTooManyRequests && s != http.StatusRequestTimeout && s < 500 {
		return -1
	}
	value := resp.Header.Get("Retry-After")
	if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 {
		return time.Duration(min(n, 1e6) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(c.now()), 0)
	}
	return 0
}

// explain gives err as a *chatError that names the endpoint, with a hint and without the key.
func (c *chatClient) explain(ctx context.Context, err error) *chatError {
	e := &chatError{Fault: faultReply, Message: err.Error(), cause: err}
	if known, ok := errors.AsType[*chatError](err); ok {
		e = &chatError{Fault: known.Fault, Status: known.Status, Message: known.Message, Hint: known.Hint, cause: err}
	}
	if ctx.Err() != nil {
		e.Fault, e.Message = faultUnreachable, fmt.Sprintf("no complete reply within %s", c.timeout)
	}
	e.Message = c.redactor.text(fmt.Sprintf("model endpoint %s: %s", c.endpoint.Name, e.Message))
	if e.Hint == "" {
		e.Hint = c.hint(e)
	}
	return e
}

func (c *chatClient) hint(e *chatError) string {
	switch e.Fault {
	case faultKey:
		if c.endpoint.KeyFrom == "" {
			return "the endpoint at " + c.endpoint.BaseURL + " wants a key; set TAI_API_KEY beside TAI_BASE_URL, or OPENAI_API_KEY beside OPENAI_BASE_URL"
		}
		return "check " + c.endpoint.KeyFrom
	case faultCredit:
		return "the account of " + c.endpoint.KeyFrom + " has no credit left"
	case faultModel:
		return fmt.Sprintf("the model asked for is %q; set TAI_MODEL to one that %s has", c.endpoint.Model, c.endpoint.BaseURL)
	case faultContext:
		return "start a new conversation, or use a model with a larger window"
	case faultRate, faultOverloaded:
		return "try again later"
	case faultUnreachable:
		return "is " + c.endpoint.BaseURL + " the right address, and can this machine reach it?"
	case faultRequest, faultReply:
		return "is " + c.endpoint.BaseURL + " the address of an OpenAI-compatible API?"
	}
	return ""
}

// chatReason shortens a transport error to its cause: the address is named elsewhere.
func chatReason(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		if _, ok := err.(interface{ Timeout() bool }); !ok {
			return err.Error()
		}
		err = next
	}
}

// chatBackoff is the wait after the given try: doubled each time, with up to a fourth more so that clients do not come back together.
func chatBackoff(try int) time.Duration {
	d := chatFirstWait << (try - 1)
	return d + rand.N(d/4)
}
