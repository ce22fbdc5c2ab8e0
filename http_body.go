// This file reads the body of a fetched answer: unpacked, bounded, and with what is known of how much was left out. It knows no tool.
package main

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"
)

const (
	bodyPackedSlack = 1 << 20 // bytes that a packed body may have beyond its bound: packing hardly ever adds
	bodySniff       = 512     // bytes that tell the type of an answer without one (MIME Sniffing standard)
)

// webBody is what was read of an answer.
type webBody struct {
	Data  []byte
	Cut   bool  // there is more than the bound
	Left  int64 // bytes that were left out, -1 where that is not known
	Fault error // why the end is missing, nil if the answer ended as it should
}

// readWebBody reads at most max bytes, counted after unpacking. An error means that nothing could be read; a body that breaks off is given as far as it came.
func readWebBody(resp *http.Response, max int64) (webBody, error) {
	src, packed, err := unpackedBody(resp, max)
	if err != nil {
		return webBody{}, err
	}
	b, err := io.ReadAll(io.LimitReader(src, max+1))
	out := webBody{Data: b}
	switch {
	case int64(len(b)) > max:
		out.Data, out.Cut, out.Left = b[:max], true, -1
		if !packed && resp.ContentLength > max {
			out.Left = resp.ContentLength - max
		}
	case err != nil && len(b) == 0:
		return webBody{}, errorf("read the answer: %w", err)
	case err != nil:
		out.Fault = err
	}
	return out, nil
}

// unpackedBody undoes gzip and deflate (RFC 9110, 8.4.1). deflate is zlib's format, but some servers send it bare.
func unpackedBody(resp *http.Response, max int64) (src io.Reader, packed bool, err error) {
	if resp.Request != nil && resp.Request.Method == http.MethodHead {
		return strings.NewReader(""), false, nil
	}
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header["Content-Encoding"], ",")))
	raw := &cappedBody{src: resp.Body, left: max + bodyPackedSlack}
	switch coding {
	case "", "identity":
		return resp.Body, false, nil
	case "gzip", "x-gzip":
		src, err = gzip.NewReader(raw)
	case "deflate":
		b := bufio.NewReader(raw)
		head, peek := b.Peek(2)
		if peek == nil && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
			src, err = zlib.NewReader(b)
		} else {
			src = flate.NewReader(b)
		}
	default:
		return nil, false, errorf("the answer is packed as %s, which was not asked for", visibleLine(clip(coding, 60)))
	}
	if errors.Is(err, io.EOF) && resp.ContentLength <= 0 {
		return strings.NewReader(""), false, nil // an answer without a body
	}
	if err != nil {
		return nil, false, errorf("unpack the answer: %w", err)
	}
	return src, true, nil
}

// cappedBody bounds the packed bytes, so that a body of many empty parts ends.
type cappedBody struct {
	src  io.Reader
	left int64
}

func (c *cappedBody) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, newError("it is packed into more bytes than it holds")
	}
	n, err := c.src.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// webType is the media type of an answer, found out from its first bytes where it says none.
func webType(h http.Header, body []byte) string {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if t = strings.ToLower(strings.TrimSpace(t)); t != "" {
		return t
	}
	t, _, _ = strings.Cut(http.DetectContentType(body[:min(len(body), bodySniff)]), ";")
	return t
}
