// This file reads delimited text, such as CSV (RFC 4180) and TSV, row by row without keeping any, and finds out its delimiter. It types no values.
package main

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

const (
	csvBuffer = 256 << 10 // bytes that are read at once
	csvRowMax = 16 << 20  // bytes of one row
	csvSniff  = 64 << 10  // bytes at the start that tell how a text is written
	csvSample = 50        // rows of them
)

// csvReader gives the rows of a text. A field in quotes may hold line ends and delimiters; a quote that is doubled there stands for itself. A quote inside a
// field that does not begin with one is text, and so is what stands behind a closing quote. Empty lines are no rows.
type csvReader struct {
	r      io.Reader
	comma  byte
	quotes bool // fields may be in quotes
	buf    []byte
	at     int // of the next byte in buf
	end    int // of what is in buf
	eof    bool
	line   int // number of the line that the last row begins on
	lines  int // line ends passed
	fields [][]byte
	spans  []csvSpan
	text   []byte // of fields that are not in buf as they are
}

// csvSpan is a field: bytes of buf, or of text.
type csvSpan struct {
	from, to int
	own      bool
}

//go:noinline for size: it is called in many places
func newCSVReader(r io.Reader, comma byte, quotes bool) *csvReader {
	return &csvReader{r: r, comma: comma, quotes: quotes, buf: make([]byte, csvBuffer)}
}

// errCSVMore says that a row goes on behind what was read.
var errCSVMore = errors.New("the row goes on")

// next gives the fields of the next row, which are good until the next call, or io.EOF.
func (c *csvReader) next() ([][]byte, error) {
	for {
		if c.at == c.end && c.eof {
			return nil, io.EOF
		}
		n, err := c.row(c.buf[c.at:c.end])
		if err == errCSVMore {
			if err = c.fill(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		from := c.at
		c.at += n
		c.line = c.lines + 1
		c.lines += bytes.Count(c.buf[from:c.at], []byte{'\n'})
		if len(c.spans) == 0 {
			continue
		}
		c.fields = c.fields[:0]
		for _, s := range c.spans {
			if s.own {
				c.fields = append(c.fields, c.text[s.from:s.to])
			} else {
				c.fields = append(c.fields, c.buf[from+s.from:from+s.to])
			}
		}
		return c.fields, nil
	}
}

// fill reads until the buffer is full or the text ends, so that a long row is not begun again for every piece of it. The buffer grows with a row that does not fit.
func (c *csvReader) fill() error {
	if c.at > 0 {
		copy(c.buf, c.buf[c.at:c.end])
		c.end, c.at = c.end-c.at, 0
	}
	if c.end == len(c.buf) {
		if len(c.buf) >= csvRowMax {
			return errorf("line %d: a row of more than %d bytes; a quote that opens and never closes makes one: quotes false reads quotes as text", c.lines+1, csvRowMax)
		}
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
	n, err := io.ReadFull(c.r, c.buf[c.end:])
	c.end += n
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		c.eof, err = true, nil
	}
	return err
}

// row finds the fields of the row at the start of b, and how many bytes it takes. No fields are an empty line.
func (c *csvReader) row(b []byte) (n int, err error) {
	c.spans, c.text = c.spans[:0], c.text[:0]
	for i := 0; ; {
		if c.quotes && i < len(b) && b[i] == '"' {
			i, err = c.quoted(b, i+1)
			if err != nil {
				return 0, err
			}
		} else {
			from := i
			if i = c.plain(b, i); i == len(b) && !c.eof {
				return 0, errCSVMore
			}
			to := i
			if ended := i == len(b) || b[i] == '\n'; ended && to > from && b[to-1] == '\r' {
				to--
			}
			c.spans = append(c.spans, csvSpan{from: from, to: to})
		}
		if i < len(b) && b[i] == c.comma {
			i++
			continue
		}
		if len(c.spans) == 1 && !c.spans[0].own && c.spans[0].from == c.spans[0].to {
			c.spans = c.spans[:0]
		}
		return min(i+1, len(b)), nil
	}
}

// plain gives the place of the next delimiter or line end.
func (c *csvReader) plain(b []byte, i int) int {
	for comma := c.comma; i < len(b); i++ {
		if b[i] == comma || b[i] == '\n' {
			return i
		}
	}
	return i
}

// quoted takes a field whose opening quote is behind i, and gives the place of the delimiter or line end behind it.
func (c *csvReader) quoted(b []byte, i int) (int, error) {
	from, start := i, len(c.text)
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			if c.eof {
				return 0, errorf("line %d: a quote opens in this row and never closes; quotes false reads quotes as text", c.lines+1)
			}
			return 0, errCSVMore
		}
		i += j
		if i+1 == len(b) && !c.eof {
			return 0, errCSVMore
		}
		if i+1 < len(b) && b[i+1] == '"' {
			c.text = append(c.text, b[from:i+1]...)
			i += 2
			from = i
			continue
		}
		break
	}
	tail := i + 1
	end := c.plain(b, tail)
	if end == len(b) && !c.eof {
		return 0, errCSVMore
	}
	last := end
	if (end == len(b) || b[end] == '\n') && last > tail && b[last-1] == '\r' {
		last--
	}
	// own also marks a field in quotes that is empty, and so no empty line
	c.text = append(append(c.text, b[from:i]...), b[tail:last]...)
	c.spans = append(c.spans, csvSpan{start, len(c.text), true})
	return end, nil
}

// csvDelimiters are those that are looked for, in order of preference.
const csvDelimiters = ",\t;|"

// csvDelimiter finds the delimiter of a text by its first bytes: the one by which most of the first rows have as many fields as the first one, and then the
// one that gives most fields.
func csvDelimiter(head []byte, whole, quotes bool) byte {
	best, most := byte(','), 0
	for _, comma := range []byte(csvDelimiters) {
		c := newCSVReader(bytes.NewReader(head), comma, quotes)
		rows, fit, fields := 0, 0, 0
		for rows < csvSample {
			row, err := c.next()
			if err != nil || !whole && rows > 0 && c.eof && c.at == c.end {
				break // the last row of a part is cut
			}
			if rows++; rows == 1 {
				fields = len(row)
			}
			if len(row) == fields {
				fit++
			}
		}
		if fields < 2 {
			continue
		}
		if score := fit*1000/rows*1000 + min(fields, 999); score > most {
			best, most = comma, score
		}
	}
	return best
}

// csvDeclared gives the delimiter that a first line names as spreadsheets have it: sep=; and nothing else.
func csvDeclared(head []byte) (comma byte, ok bool) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) != len("sep=;") || !bytes.EqualFold(line[:4], []byte("sep=")) || line[4] == '"' {
		return 0, false
	}
	return line[4], true
}

// csvRecoder gives a text with what is not usual in it made so: with returns the line ends \r of old files as \n, with upper the bytes beyond ASCII as the
// characters of that 8-bit encoding.
type csvRecoder struct {
	r       io.Reader
	returns bool
	upper   []rune
	in, out []byte
	err     error
}

func (c *csvRecoder) Read(p []byte) (int, error) {
	for len(c.out) == 0 && c.err == nil {
		c.recode()
	}
	n := copy(p, c.out)
	if c.out = c.out[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, c.err
}

func (c *csvRecoder) recode() {
	if c.in == nil {
		c.in = make([]byte, 32<<10)
	}
	n, err := c.r.Read(c.in)
	out := c.out[:0]
	for _, b := range c.in[:n] {
		switch {
		case b == '\r' && c.returns:
			out = append(out, '\n')
		case b >= utf8.RuneSelf && c.upper != nil:
			out = utf8.AppendRune(out, c.upper[b-utf8.RuneSelf])
		default:
			out = append(out, b)
		}
	}
	c.out, c.err = out, err
}

// utf8Watch counts in what is read through it the characters beyond ASCII and the bytes that are none, in the pieces where there are such bytes.
type utf8Watch struct {
	r         io.Reader
	part      []byte // the beginning of a character
	good, bad int
}

func (u *utf8Watch) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	b := p[:n]
	for len(u.part) > 0 && len(b) > 0 && !utf8.FullRune(u.part) {
		u.part, b = append(u.part, b[0]), b[1:]
	}
	if len(u.part) > 0 && (err != nil || utf8.FullRune(u.part)) {
		u.look(u.part)
		u.part = u.part[:0]
	}
	if len(u.part) == 0 {
		whole := trimPartRune(b)
		u.look(whole)
		if u.part = append(u.part, b[len(whole):]...); err != nil && len(u.part) > 0 {
			u.look(u.part)
		}
	}
	return n, err
}

func (u *utf8Watch) look(b []byte) {
	if utf8.Valid(b) {
		return
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			u.bad++
		case n > 1:
			u.good++
		}
		b = b[n:]
	}
}
