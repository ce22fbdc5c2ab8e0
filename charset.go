// This file turns the bytes of a text into UTF-8: it finds out in which encoding they are and decodes it. It follows the WHATWG Encoding
// standard (labels of section 4.2, decode of section 6) and the prescan of the HTML standard (13.2.3.2). It opens nothing.
package main

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	charsetUTF8    = "utf-8"
	charsetUTF16LE = "utf-16le"
	charsetUTF16BE = "utf-16be"
	charsetLatin   = "windows-1252"
	charsetPrescan = 1024 // bytes in which a document may say its encoding (HTML standard 13.2.3.2)
	charsetLabel   = 64   // bytes of a label that are repeated in a message
	charsetBOM     = "\xef\xbb\xbf"
)

// charsetLabels are the labels of the encodings that are decoded, those of one encoding separated by blanks.
func charsetLabels() [][2]string {
	list := [][2]string{
		{charsetUTF8, "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8"},
		{charsetUTF16LE, "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le"},
		{charsetUTF16BE, "unicodefffe utf-16be"},
		{charsetLatin, "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252"},
		{"windows-1254", "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254"},
		{"iso-8859-15", "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9"},
	}
	for _, n := range []string{"1250", "1251", "1253", "1255", "1256", "1257", "1258"} {
		list = append(list, [2]string{"windows-" + n, "cp" + n + " windows-" + n + " x-cp" + n})
	}
	return list
}

// charsetNamed gives the encoding that a label means, "" for one that is not decoded here.
func charsetNamed(label string) string {
	label = strings.ToLower(strings.Trim(label, "\t\n\f\r '\"")) // headers come with quotes of either kind
	if label == "" || strings.Contains(label, " ") {
		return ""
	}
	for _, c := range charsetLabels() {
		if strings.Contains(" "+c[1]+" ", " "+label+" ") {
			return c[0]
		}
	}
	return ""
}

// charsetFault is an encoding that tai does not decode.
type charsetFault struct{ label string }

func (e *charsetFault) Error() string {
	return fmt.Sprintf("the text is in the encoding %s, which tai does not decode; http_request with save_to keeps its bytes", visibleLine(clip(e.label, charsetLabel)))
}

// byteOrderMark gives the encoding that a text says by its byte order mark, and how long that is; "" and 0 without one.
func byteOrderMark(head []byte) (name string, size int) {
	switch {
	case bytes.HasPrefix(head, []byte(charsetBOM)):
		return charsetUTF8, 3
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return charsetUTF16LE, 2
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return charsetUTF16BE, 2
	}
	return "", 0
}

// findCharset gives the encoding of a text: by its byte order mark, else by the Content-Type header, else by what an HTML or XML document says itself.
// Without any it is UTF-8 if it can be, else windows-1252. A label of an unknown encoding is a *charsetFault.
func findCharset(body []byte, contentType string) (string, error) {
	if name, _ := byteOrderMark(body); name != "" {
		return name, nil
	}
	if _, params, err := mime.ParseMediaType(contentType); err == nil && params["charset"] != "" {
		return knownCharset(params["charset"])
	}
	if label := charsetPrescanned(body); label != "" {
		name, err := knownCharset(label)
		if name == charsetUTF16LE || name == charsetUTF16BE {
			name = charsetUTF8 // it could be read as ASCII, so it is not UTF-16 (HTML standard 13.2.3.2)
		}
		return name, err
	}
	if utf8.Valid(body) {
		return charsetUTF8, nil
	}
	return charsetLatin, nil
}

func knownCharset(label string) (string, error) {
	name := charsetNamed(label)
	if name == "" {
		return "", &charsetFault{label}
	}
	return name, nil
}

// charsetPrescanned gives the label in a meta element or an XML declaration at the start of a document, "" if there is none.
func charsetPrescanned(body []byte) string {
	head := string(body[:min(len(body), charsetPrescan)])
	if strings.HasPrefix(head, "<?xml") {
		decl, _, _ := strings.Cut(head, "?>")
		if _, rest, ok := strings.Cut(decl, "encoding="); ok && len(rest) > 1 && (rest[0] == '"' || rest[0] == '\'') {
			label, _, _ := strings.Cut(rest[1:], rest[:1])
			return label
		}
	}
	z := htmlTokenizer{s: head}
	for {
		t, ok := z.next()
		if !ok {
			return ""
		}
		if t.kind != htmlStart || t.name != "meta" {
			continue
		}
		attrs := parseHTMLAttrs(t.attrs)
		if label := attrs["charset"]; label != "" {
			return label
		}
		if strings.EqualFold(attrs["http-equiv"], "content-type") {
			if label := charsetOfContent(attrs["content"]); label != "" {
				return label
			}
		}
	}
}

// charsetOfContent reads a charset out of text/html; charset=x, quoted or not, as it stands in pages.
func charsetOfContent(content string) string {
	_, rest, ok := strings.Cut(strings.ToLower(content), "charset")
	rest = strings.TrimLeft(rest, "\t\n\f\r ")
	if !ok || !strings.HasPrefix(rest, "=") {
		return ""
	}
	rest = strings.TrimLeft(rest[1:], "\t\n\f\r \"'")
	if i := strings.IndexAny(rest, "\t\n\f\r ;\"'"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// decodeCharset gives body as UTF-8, without a byte order mark. What stands for nothing becomes U+FFFD; name is one of findCharset's.
func decodeCharset(body []byte, name string) string {
	switch name {
	case charsetUTF8:
		return strings.ToValidUTF8(strings.TrimPrefix(string(body), charsetBOM), "\uFFFD")
	case charsetUTF16LE, charsetUTF16BE:
		b, _ := io.ReadAll(&utf16Reader{r: bytes.NewReader(body), big: name == charsetUTF16BE}) // memory is always read
		return strings.TrimPrefix(string(b), charsetBOM)
	}
	upper := []rune(charsetUpper(name))
	var out strings.Builder
	out.Grow(len(body) + len(body)/8)
	for _, b := range body {
		if b < utf8.RuneSelf {
			out.WriteByte(b)
		} else {
			out.WriteRune(upper[b-utf8.RuneSelf])
		}
	}
	return out.String()
}

// trimPartRune cuts off a character that is not complete at the end, as a bound may have left it.
func trimPartRune(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

// utf16Reader gives UTF-16 as UTF-8. A half that stands alone becomes U+FFFD, as does an odd byte at the end.
type utf16Reader struct {
	r     io.Reader
	big   bool
	piece []byte
	in    []byte // read and not yet decoded
	out   []byte // decoded and not yet given
	high  rune   // the first half of a pair, else 0
	err   error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 && u.err == nil {
		u.decode()
	}
	n := copy(p, u.out)
	if u.out = u.out[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, u.err
}

// decode reads a piece and decodes it.
func (u *utf16Reader) decode() {
	if u.piece == nil {
		u.piece = make([]byte, 32<<10)
	}
	n, err := u.r.Read(u.piece)
	u.in, u.err = append(u.in, u.piece[:n]...), err
	out := u.out[:0]
	i := 0
	for ; i+1 < len(u.in); i += 2 {
		r := rune(u.in[i]) | rune(u.in[i+1])<<8
		if u.big {
			r = rune(u.in[i])<<8 | rune(u.in[i+1])
		}
		if u.high != 0 {
			if pair := utf16.DecodeRune(u.high, r); pair != utf8.RuneError {
				out, u.high = utf8.AppendRune(out, pair), 0
				continue
			}
			out, u.high = utf8.AppendRune(out, utf8.RuneError), 0
		}
		if r >= 0xd800 && r < 0xdc00 {
			u.high = r
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	u.in = append(u.in[:0], u.in[i:]...)
	if err != nil && (u.high != 0 || len(u.in) > 0) {
		out, u.high, u.in = utf8.AppendRune(out, utf8.RuneError), 0, nil
	}
	u.out = out
}
