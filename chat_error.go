// This file sorts what goes wrong with a model endpoint into kinds, and reads the error bodies that endpoints send. It sends nothing.
package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// chatFault says what kind of failure an endpoint's answer is, for the hint and for the callers that branch on it.
type chatFault string

const (
	faultKey         chatFault = "key"         // the key is missing, wrong or not allowed
	faultCredit      chatFault = "credit"      // the account has nothing left
	faultModel       chatFault = "model"       // the model is not known there
	faultContext     chatFault = "context"     // the conversation is longer than the model takes
	faultRate        chatFault = "rate"        // too many requests
	faultOverloaded  chatFault = "overloaded"  // 5xx: the endpoint cannot answer now
	faultUnreachable chatFault = "unreachable" // no connection
	faultRequest     chatFault = "request"     // refused for another reason
	faultReply       chatFault = "reply"       // what came is no chat completion, or is cut
)

// chatError is a failed completion: what happened and, apart from it, what to do. Status is the HTTP status, 0 without one.
type chatError struct {
	Fault   chatFault
	Status  int
	Message string
	Hint    string
	cause   error
	final   bool // sending it again would not help
}

func (e *chatError) Error() string { return e.Message }
func (e *chatError) Unwrap() error { return e.cause }

const (
	chatMaxMessage = 600 // bytes of an endpoint's own error text that are shown
	chatWebPage    = "the address answers with a web page, not with an API"
)

// chatTransportError says why no answer came at all, and what may help.
func chatTransportError(err error) *chatError {
	e := &chatError{Fault: faultUnreachable, Message: visibleLine(chatReason(err)), cause: err}
	op, isOp := errors.AsType[*net.OpError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	_, badCert := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case badCert:
		e.Message, e.final = "its certificate is not trusted: "+e.Message, true
		e.Hint = "a proxy that reads along, or an address of one's own, needs its certificate among the system's"
	case strings.Contains(e.Message, "HTTP response to HTTPS client"):
		e.Message, e.final = "it does not speak TLS", true
		e.Hint = "does the address begin with http instead of https?"
	case isOp && op.Op == "proxyconnect", strings.Contains(e.Message, "HTTP_PROXY"), strings.Contains(e.Message, "HTTPS_PROXY"), strings.HasPrefix(e.Message, "socks connect"):
		e.Message = "the proxy cannot be used: " + e.Message
		e.Hint = "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
	case isDNS:
		e.Message, e.final = fmt.Sprintf("the name %q cannot be found", clip(visibleLine(dns.Name), 200)), dns.IsNotFound
	case strings.Contains(e.Message, "connection refused"):
		e.Message = "nothing listens there: " + e.Message
	}
	return e
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

// chatErrorOf reads the error body of an endpoint; status is 0 for an error inside a stream. Understood are {"error":{"message","code","type"}},
// {"error":"text"}, {"message":"text"}, {"detail":"text"} and each of them in a list of one.
func chatErrorOf(status int, body []byte) *chatError {
	body = bytes.TrimSpace(body)
	if list, err := jsonArray(body); err == nil && len(list) > 0 {
		body = list[0]
	}
	message, code := "", ""
	if top, err := chatFields(body); err == nil {
		inner, err := chatFields(top["error"])
		if err != nil {
			inner = top
			message, _ = jsonString(top["error"])
		}
		for _, key := range []string{"message", "detail"} {
			if s, ok := jsonString(inner[key]); ok && message == "" {
				message = s
			}
		}
		for _, key := range []string{"code", "type", "status"} {
			s, ok := jsonString(inner[key])
			if n, err := strconv.Atoi(string(inner[key])); err == nil && !ok && status == 0 && n >= 400 && n < 600 {
				status = n
			}
			code += " " + s
		}
	}
	e := &chatError{Status: status, Message: clip(visibleLine(message), chatMaxMessage)}
	e.Fault = chatFaultOf(status, strings.ToLower(message+code))
	if message == "" && bytes.HasPrefix(body, []byte("<")) {
		e.Message, e.Fault = chatWebPage, faultRequest
		if status >= 500 {
			e.Fault = faultOverloaded
		}
	}
	if e.Message == "" {
		e.Message = "no reason given"
	}
	if status > 0 {
		e.Message = fmt.Sprintf("HTTP %d: %s", status, e.Message)
	}
	return e
}

// chatFaultOf sorts an answer by its status and the lower-case text of its message and codes.
func chatFaultOf(status int, text string) chatFault {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	switch {
	case status == 402, has("insufficient_quota", "insufficient balance", "insufficient credits", "credit balance", "billing_", "spend_limit", "spend limit", "spending limit", "usage limits"):
		return faultCredit
	case status == 413, has("context_length_exceeded", "context length", "maximum context", "context window", "context limit", "too many tokens", "prompt is too long", "input token count", "request_too_large", "exceed_context_size"):
		return faultContext
	case status == 401, status == 403, has("invalid_api_key", "api key not valid", "incorrect api key", "authentication_error", "permission_error"):
		return faultKey
	case has("model_not_found", "no endpoints found"), has("model") && (status == 404 || has("not found", "does not exist", "not exist", "invalid model", "not a valid model", "unknown model", "not_found_error")):
		return faultModel
	case status == 429, has("rate_limit", "rate limit"):
		return faultRate
	case status >= 500, has("overloaded", "api_error"):
		return faultOverloaded
	}
	return faultRequest
}
