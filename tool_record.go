// This file holds the native tools about records, and how a record is listed, for them and for tai record. Known secrets are taken out of a
// record as a whole before any part of it is given, so that none shows in two halves. It stores and deletes none.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	recordListLimit  = 50       // records listed without a limit
	recordListMax    = 500      // the most that record_list gives
	recordPageBytes  = 16 << 10 // bytes of one record_read by bytes unless it says how many
	recordPageMax    = 60_000   // bytes, the most it may ask for, so that a page stays inline (mcpResultMax)
	recordPageBinary = 36 << 10 // bytes of a binary record in one page: 48 KiB in base64
	recordSearchMax  = 64 << 20 // bytes of a record that are searched
	recordHint       = "record_list shows the ids"
)

// recordDesk is what the record tools work with.
type recordDesk struct {
	vault func(context.Context) (*vault, error)
	mask  func(string) string
}

// recordJSON is a record as commands and tools give it.
type recordJSON struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Origin  string    `json:"origin"`
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created"`
	Text    string    `json:"text,omitempty"`
}

//go:noinline for size: it is called in many places
func recordJSONOf(r recordInfo) recordJSON {
	return recordJSON{ID: r.ID, Kind: r.Kind, Origin: r.Origin, Size: r.Size, SHA256: r.SHA256, Created: r.Created.UTC()}
}

func (r recordJSON) line() string {
	return fmt.Sprintf("%s  %s  %d bytes  %s  %s", r.ID, visibleLine(r.Kind), r.Size, visibleLine(r.Origin), r.Created.Format(time.RFC3339))
}

// recordTools gives record_list, record_read and record_search.
func recordTools(d recordDesk) []tool {
	const id = `"id":{"type":"string","minLength":1,"maxLength":64,"description":"The record's id, such as r-7k2m."}`
	return []tool{{
		Name: "record_list", Family: "records",
		Description: "List the records kept in the vault, newest first: results too long to show inline (spilled results), notes and exports, with id, size and where each came from.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{
"kind":{"type":"string","minLength":1,"maxLength":64,"description":"Only records of this kind, such as result (default: all)."},
"session":{"type":"string","minLength":1,"maxLength":64,"description":"Only records of this session (default: all)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"How many to list at most (default %d)."}}}`, recordListMax, recordListLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{
"records":{"type":"array","description":"The newest first.","items":{"type":"object","properties":{"id":{"type":"string"},"kind":{"type":"string"},"origin":{"type":"string","description":"What made it."},
"session":{"type":"string"},"size":{"type":"integer","description":"Bytes."},"sha256":{"type":"string"},"created":{"type":"string"},"binary":{"type":"boolean"}}}},
"total":{"type":"integer","description":"All records that match."},
"left_out":{"type":"integer","description":"Records that match and are not shown."},
` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run:   d.list,
	}, {
		Name: "record_read", Family: "records", Core: true,
		Description: "Read a record page by page, by lines or by bytes: the rest of a result that was too long and is kept under a record id. Binary records come as base64.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{%s,
"offset":{"type":"integer","minimum":0,"description":"First line, counted from 1 (default 1); by bytes the first byte, counted from 0 (default 0)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"How many lines or bytes at most (default %d lines, %d bytes; %d bytes is the most)."},
"unit":{"type":"string","enum":["lines","bytes"],"description":"Count in lines or in bytes; long lines are whole only by bytes (default lines)."}}}`,
			id, fileMaxLines, fileLines, recordPageBytes, recordPageMax)),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run:   d.read,
	}, {
		Name: "record_search", Family: "records", Core: true,
		Description: "Find the lines of one record that match a regular expression or a literal text, as in a long result that was kept under a record id.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id","pattern"],"properties":{%s,
"pattern":{"type":"string","minLength":1,"maxLength":%d,"description":"Regular expression (RE2 syntax), matched line by line; or the text itself with literal."},
"literal":{"type":"boolean","description":"Take the pattern as plain text (default false)."},
"context":{"type":"integer","minimum":0,"maximum":%d,"description":"Lines to show around each match (default 0)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Matching lines to show at most (default %d)."}}}`,
			id, searchMaxPattern, searchMaxContext, searchMaxLimit, searchLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{
"matches":{"type":"array","description":"The matches shown.","items":{"type":"object","properties":{"line":{"type":"integer"},"byte":{"type":"integer","description":"Where the match begins, for record_read by bytes."},"text":{"type":"string"}}}},
"matching_lines":{"type":"integer","description":"All matching lines, shown or not."},
"lines":{"type":"integer","description":"Lines that were searched."},
"incomplete":{"type":"boolean","description":"A bound of time or size came before the end."},
` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run:   func(ctx context.Context, c toolCall) (toolResult, error) { return d.search(ctx, c, searchTime) },
	}}
}

func (d recordDesk) list(ctx context.Context, c toolCall) (toolResult, error) {
	args := struct {
		Kind, Session string
		Limit         int
	}{Limit: recordListLimit}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	v, err := d.vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	session := args.Session
	if session != "" {
		session = spokenID(session)
	}
	list, total, err := v.records(ctx, args.Kind, session, args.Limit)
	if err != nil {
		return toolResult{}, err
	}
	type row struct {
		recordJSON
		Session string `json:"session,omitempty"`
		Binary  bool   `json:"binary,omitempty"`
	}
	rows := []row{}
	var text textBuilder
	for _, info := range list {
		r := row{recordJSONOf(info), info.Session, !info.Text}
		rows = append(rows, r)
		text.WriteString(r.line())
		if r.Binary {
			text.WriteString("  binary")
		}
		text.WriteByte('\n')
	}
	switch left := total - len(list); {
	case total == 0 && args.Kind+args.Session == "":
		text.WriteString("no records are kept\n")
	case total == 0:
		text.WriteString("no record matches\n")
	case left > 0:
		fmt.Fprintf(&text, "[%d of %d records; %d older ones left out, limit shows more]\n", len(list), total, left)
	}
	structured, err := json.Marshal(struct {
		Records []row `json:"records"`
		Total   int   `json:"total"`
		LeftOut int   `json:"left_out"`
	}{rows, total, total - len(list)})
	return toolResult{Text: text.String(), Structured: structured}, err
}

// record reads a record with known secrets taken out. One that is binary and holds a known secret is not given at all: there is no telling
// what a part of it would show.
func (d recordDesk) record(ctx context.Context, id string) (info recordInfo, body []byte, hint string, err error) {
	v, err := d.vault(ctx)
	if err != nil {
		return info, nil, "", err
	}
	info, body, err = v.record(ctx, id)
	if errors.Is(err, errNotFound) {
		return info, nil, recordHint, errorf(`property "id": there is no record %s`, quoteClip(id))
	}
	if err != nil {
		return info, nil, "", err
	}
	masked := d.mask(string(body))
	if info.Text {
		return info, []byte(masked), "", nil
	}
	if encoded := base64.StdEncoding.EncodeToString(body); masked != string(body) || d.mask(encoded) != encoded {
		return info, nil, "", errorf("record %s is binary and holds a known secret, so nothing of it is given", info.ID)
	}
	return info, body, "", nil
}

func (d recordDesk) read(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct {
		ID     string
		Offset *int
		Limit  int
		Unit   string
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	bytewise := args.Unit == "bytes"
	offset, limit := 1, fileLines
	if bytewise {
		offset, limit = 0, recordPageBytes
	}
	if args.Offset != nil {
		offset = *args.Offset
	}
	if args.Limit > 0 {
		limit = args.Limit
	}
	switch {
	case bytewise && limit > recordPageMax:
		return toolResult{}, errorf(`property "limit": expected at most %d bytes`, recordPageMax)
	case !bytewise && offset < 1:
		return toolResult{}, newError(`property "offset": expected 1 or more, as lines are counted from 1; unit bytes counts from 0`)
	}
	info, body, hint, err := d.record(ctx, args.ID)
	switch {
	case err != nil:
		return toolResult{Hint: hint}, err
	case len(body) == 0:
		return toolResult{Text: info.ID + " is empty"}, nil
	case bytewise && offset >= len(body):
		return toolResult{}, errorf("offset %d is past the end: the record has %d bytes", offset, len(body))
	case bytewise && info.Text:
		return toolResult{Text: textPage(string(body), offset, limit)}, nil
	case bytewise:
		return toolResult{Text: binaryPage(body, offset, limit)}, nil
	case !info.Text:
		return toolResult{Text: fmt.Sprintf("%s is binary: %d bytes, %s, SHA-256 %s; unit bytes gives it as base64", info.ID, info.Size, http.DetectContentType(body[:min(len(body), 512)]), info.SHA256)}, nil
	}
	return numberedLines(ctx, bufio.NewReaderSize(bytes.NewReader(body), 64<<10), "record", offset, limit)
}

// textPage gives limit bytes of a text from offset on, at least one character, with what is left. A character is never cut: where offset lies inside of
// one, the page begins with it and says so, and one that would pass the limit is left for the next page.
func textPage(s string, offset, limit int) string {
	from := offset
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	to := min(from+limit, len(s))
	for to > from && to < len(s) && !utf8.RuneStart(s[to]) {
		to--
	}
	if to == from {
		_, size := utf8.DecodeRuneInString(s[from:])
		to = from + size
	}
	page := s[from:to]
	if !strings.HasSuffix(page, "\n") {
		page += "\n"
	}
	if from < offset {
		page += fmt.Sprintf("[offset %d lies inside a character, which begins at byte %d]\n", offset, from)
	}
	return page + pageNote(from, to, len(s))
}

// binaryPage gives a part of a binary record in base64.
func binaryPage(b []byte, offset, limit int) string {
	to := min(offset+min(limit, recordPageBinary), len(b))
	return base64.StdEncoding.EncodeToString(b[offset:to]) + "\n[base64 of what follows]\n" + pageNote(offset, to, len(b))
}

// pageNote says which bytes were given; nothing where it was all.
func pageNote(from, to, size int) string {
	if from == 0 && to == size {
		return fmt.Sprintf("[all %d bytes]\n", size)
	}
	note := fmt.Sprintf("[bytes %d to %d of %d]\n", from, to-1, size)
	if to < size {
		note += fmt.Sprintf("[%d bytes left out; go on with offset %d]\n", size-to, to)
	}
	return note
}

// recordMatch is a line that a pattern fits, and the byte where the match begins.
type recordMatch struct {
	Line int    `json:"line"`
	Byte int    `json:"byte"`
	Text string `json:"text"`
}

// recordFound is what a search of one record comes to.
type recordFound struct {
	Matches    []recordMatch `json:"matches"`
	Matching   int           `json:"matching_lines"`
	Lines      int           `json:"lines"`
	Incomplete bool          `json:"incomplete"`
}

func (d recordDesk) search(ctx context.Context, c toolCall, within time.Duration) (toolResult, error) {
	var call struct{ ID string }
	args := searchArgs{Limit: searchLimit}
	if err := joinErrors(json.Unmarshal(c.Args, &call), json.Unmarshal(c.Args, &args)); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	re, err := args.compile()
	if err != nil {
		return toolResult{}, err
	}
	info, body, hint, err := d.record(ctx, call.ID)
	switch {
	case err != nil:
		return toolResult{Hint: hint}, err
	case !info.Text:
		return toolResult{Hint: "record_read with unit bytes gives it as base64"}, errorf("record %s is binary: only text is searched", info.ID)
	}
	inner, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	found := recordFound{Matches: []recordMatch{}, Incomplete: len(body) > recordSearchMax}
	s := &search{ctx: inner, args: args, re: re}
	found.scan(s, info.ID, string(body[:min(len(body), recordSearchMax)]))
	if ctx.Err() != nil {
		return toolResult{}, ctx.Err()
	}
	structured, err := json.Marshal(found)
	return toolResult{Text: found.text(s), Structured: structured}, err
}

// scan looks at each line of a record and has s write those that match.
func (f *recordFound) scan(s *search, id, text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	at := 0
	for i, line := range lines {
		if i%1024 == 0 && s.stopped() {
			f.Incomplete = true
			return
		}
		f.Lines++
		if hit := firstMatch(s.re, strings.TrimSuffix(line, "\r")); hit >= 0 {
			f.Matching++
			if len(s.matches) < s.args.Limit && s.out.Len() < searchTextMax {
				s.show(id, lines, i, hit)
				f.Matches = append(f.Matches, recordMatch{i + 1, at + hit, s.matches[len(s.matches)-1].Text})
			}
		}
		at += len(line) + 1
	}
}

func firstMatch(re *regexp.Regexp, line string) int {
	if hit := re.FindStringIndex(line); hit != nil {
		return hit[0]
	}
	return -1
}

func (f *recordFound) text(s *search) string {
	var b textBuilder
	if f.Matching == 0 {
		b.WriteString("no matches\n")
	}
	b.Write(s.out.Bytes())
	fmt.Fprintf(&b, "[%s of %d", plural(f.Matching, "matching line"), f.Lines)
	if left := f.Matching - len(f.Matches); left > 0 {
		fmt.Fprintf(&b, "; %d not shown", left)
	}
	if f.Incomplete {
		b.WriteString("; incomplete: a bound of time or size came first")
	}
	b.WriteString("]")
	return b.String()
}
