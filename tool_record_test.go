package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// recordBox is a toolbox with the record tools, and a function that keeps a record in its vault.
func recordBox(t *testing.T) (box *toolsBox, put func(kind, session, body string) string) {
	t.Helper()
	redact := newRedactor([]namedSecret{{Name: "TOKEN", Value: "hush-hush-1"}}).text
	box = newToolsBox(t, modeReadOnly, nil, recordTools(recordDesk{func(context.Context) (*vault, error) { return box.vault, nil }, redact})...)
	return box, func(kind, session, body string) string {
		t.Helper()
		info, err := box.vault.putRecord(t.Context(), kind, "maker", session, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return info.ID
	}
}

// The newest come first, narrowed by kind and session, with what is left out; times are UTC.
func TestRecordList(t *testing.T) {
	t.Parallel()
	box, put := recordBox(t)
	if r := toolsRun(t, box, "record_list", `{}`); r.IsError || r.Text != "no records are kept\n" || string(r.Structured) != `{"records":[],"total":0,"left_out":0}` {
		t.Errorf("none: %+v", r)
	}
	first, second, third := put("result", "s-1", "one"), put("note", "s-2", "two!"), put("result", "s-2", "\x00")
	for _, tc := range []struct{ name, args, ids, text string }{
		{"all", `{}`, third + " " + second + " " + first, third + "  result  1 bytes  maker  "},
		{"a limit", `{"limit":1}`, third, "[1 of 3 records; 2 older ones left out, limit shows more]\n"},
		{"a kind", `{"kind":"note"}`, second, "4 bytes"},
		{"a session", `{"session":"S-2"}`, third + " " + second, ""},
		{"both", `{"kind":"result","session":"s-1"}`, first, ""},
		{"nothing", `{"kind":"export"}`, "", "no record matches\n"},
	} {
		r := toolsRun(t, box, "record_list", tc.args)
		var doc struct {
			Records []struct {
				ID, Session, Created string
				Binary               bool
			}
		}
		if err := json.Unmarshal(r.Structured, &doc); err != nil || r.IsError {
			t.Fatalf("%s: %v: %+v", tc.name, err, r)
		}
		ids := []string{}
		for _, rec := range doc.Records {
			ids = append(ids, rec.ID)
			if at, err := time.Parse(time.RFC3339, rec.Created); err != nil || !strings.HasSuffix(rec.Created, "Z") || time.Since(at) > time.Hour || rec.Binary != (rec.ID == third) {
				t.Errorf("%s: %+v, %v", tc.name, rec, err)
			}
		}
		if got := strings.Join(ids, " "); got != tc.ids || !strings.Contains(r.Text, tc.text) {
			t.Errorf("%s: %q, want %q, text %q", tc.name, got, tc.ids, r.Text)
		}
	}
	if r := toolsRun(t, box, "record_list", `{"limit":1}`); !regexp.MustCompile(`  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  binary\n`).MatchString(r.Text) {
		t.Errorf("no time in UTC: %q", r.Text)
	}
}

// A listing has UTC, whatever the machine's zone is.
func TestRecordTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 1, 30, 0, 0, time.FixedZone("away", 7200))
	if got := recordJSONOf(recordInfo{ID: "r-1", Kind: "note", Origin: "me", Created: at}).line(); got != "r-1  note  0 bytes  me  2026-02-28T23:30:00Z" {
		t.Errorf("%q", got)
	}
}

// Lines and bytes, what is left, no character cut, binary described or in base64, secrets out before anything is cut.
func TestRecordRead(t *testing.T) {
	t.Parallel()
	box, put := recordBox(t)
	text, accents := put("result", "", "one\ntwo\nthree\n"), put("result", "", "aé€😀z")
	secretID, binary, empty := put("result", "", "x hush-hush-1 y"), put("result", "", "\x00\x01\x02\x03\x04\x05"), put("result", "", "")
	for _, tc := range []struct{ name, id, more, want string }{
		{"all lines", text, ``, "     1\tone\n     2\ttwo\n     3\tthree\n"},
		{"some lines", text, `,"offset":2,"limit":1,"unit":"lines"`, "     2\ttwo\n[lines 2 to 2 of 3]\n[1 lines left out; go on with offset 3]\n"},
		{"all bytes", text, `,"unit":"bytes"`, "one\ntwo\nthree\n[all 14 bytes]\n"},
		{"some bytes", text, `,"unit":"bytes","offset":4,"limit":4`, "two\n[bytes 4 to 7 of 14]\n[6 bytes left out; go on with offset 8]\n"},
		{"the last bytes", text, `,"unit":"bytes","offset":8`, "three\n[bytes 8 to 13 of 14]\n"},
		{"no character is cut at the end", accents, `,"unit":"bytes","limit":5`, "aé\n[bytes 0 to 2 of 11]\n[8 bytes left out; go on with offset 3]\n"},
		{"nor at the beginning", accents, `,"unit":"bytes","offset":5`, "€😀z\n[offset 5 lies inside a character, which begins at byte 3]\n[bytes 3 to 10 of 11]\n"},
		{"one is given whole over the limit", accents, `,"unit":"bytes","offset":6,"limit":1`, "😀\n[bytes 6 to 9 of 11]\n[1 bytes left out; go on with offset 10]\n"},
		{"a secret", secretID, `,"unit":"bytes","limit":10`, "x [secret:\n[bytes 0 to 9 of 18]\n[8 bytes left out; go on with offset 10]\n"},
		{"binary", binary, ``, binary + " is binary: 6 bytes, application/octet-stream, SHA-256 " + sha256Hex([]byte("\x00\x01\x02\x03\x04\x05")) + "; unit bytes gives it as base64"},
		{"base64", binary, `,"unit":"bytes","offset":1,"limit":3`, "AQID\n[base64 of what follows]\n[bytes 1 to 3 of 6]\n[2 bytes left out; go on with offset 4]\n"},
		{"empty", empty, ``, empty + " is empty"},
		{"empty, by bytes", empty, `,"unit":"bytes"`, empty + " is empty"},
		{"another spelling of the id", strings.ToUpper(text), `,"limit":1`, "     1\tone\n[lines 1 to 1 of 3]\n[2 lines left out; go on with offset 2]\n"},
	} {
		if r := toolsRun(t, box, "record_read", `{"id":"`+tc.id+`"`+tc.more+`}`); r.IsError || r.Text != tc.want {
			t.Errorf("%s: %v %q, want %q", tc.name, r.IsError, r.Text, tc.want)
		}
	}
	hidden := put("result", "", "\x00hush-hush-1")
	encoded := put("result", "", "\x00"+base64.StdEncoding.EncodeToString([]byte("hush-hush-1")))
	for args, want := range map[string]string{
		`{"id":"r-none"}`: `property "id": there is no record "r-none"`, `{}`: "id", `{"id":7}`: "id", `{"id":"` + text + `","unit":"words"}`: "unit", `{"id":"` + text + `","limit":0}`: "limit",
		`{"id":"` + text + `","offset":-1}`: "offset", `{"id":"` + text + `","offset":0}`: `property "offset"`, `{"id":"` + text + `","offset":4}`: "past the end: the record has 3 lines",
		`{"id":"` + text + `","unit":"bytes","offset":14}`: "past the end: the record has 14 bytes", `{"id":"` + text + `","unit":"bytes","limit":60001}`: `property "limit"`, `{"id":"` + text + `","more":1}`: "more",
		`{"id":"` + hidden + `","unit":"bytes"}`: "holds a known secret", `{"id":"` + encoded + `"}`: "holds a known secret",
	} {
		if r := toolsRun(t, box, "record_read", args); !r.IsError || !strings.Contains(r.Text, want) || strings.Contains(r.Text, "hush") {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
	if r := toolsRun(t, box, "record_read", `{"id":"r-none"}`); r.Hint != recordHint {
		t.Errorf("hint %q", r.Hint)
	}
}

// Page by page a record comes out as it went in, however long the pages are.
func TestRecordPagesAreAll(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("aé€😀\n", 40)
	for limit := 1; limit < 30; limit++ {
		var all strings.Builder
		for at, pages := 0, 0; at < len(body); pages++ {
			page := textPage(body, at, limit)
			note := strings.LastIndex(page, "[bytes ")
			var from, to, size int
			if _, err := fmt.Sscanf(page[note:], "[bytes %d to %d of %d]", &from, &to, &size); err != nil || from != at || to < at || size != len(body) || pages > len(body) || !utf8.ValidString(page) {
				t.Fatalf("limit %d at %d: %q, %v", limit, at, page, err)
			}
			if to-from+1 > max(limit, utf8.UTFMax) {
				t.Errorf("limit %d gave %d bytes", limit, to-from+1)
			}
			all.WriteString(body[from : to+1])
			at = to + 1
		}
		if all.String() != body {
			t.Errorf("limit %d gives another text", limit)
		}
	}
}

func TestRecordSearch(t *testing.T) {
	t.Parallel()
	box, put := recordBox(t)
	id := put("result", "", "alpha\nbeta a.b\r\nalphabet\ngamma axb hush-hush-1\n")
	long := put("result", "", strings.Repeat("x", 10_000)+"needle"+strings.Repeat("y", 10_000))
	for _, tc := range []struct{ name, id, more, text, lines string }{
		{"a pattern", id, `,"pattern":"^alpha"`, id + ":1: alpha\n" + id + ":3: alphabet\n[2 matching lines of 4]", "1@0 3@16"},
		{"a pattern in the middle", id, `,"pattern":"a.b"`, "", "2@11 4@31"},
		{"literal", id, `,"pattern":"a.b","literal":true`, id + ":2: beta a.b\n[1 matching line of 4]", "2@11"},
		{"context", id, `,"pattern":"beta a","context":1`, id + "-1- alpha\n" + id + ":2: beta a.b\n" + id + "-3- alphabet\n[1 matching line of 4]", "2@6"},
		{"a limit", id, `,"pattern":"a","limit":1`, id + ":1: alpha\n[4 matching lines of 4; 3 not shown]", "1@0"},
		{"none", id, `,"pattern":"omega"`, "no matches\n[0 matching lines of 4]", ""},
		{"a secret is not found", id, `,"pattern":"hush"`, "no matches\n[0 matching lines of 4]", ""},
		{"a long line", long, `,"pattern":"needle"`, "", "1@10000"},
	} {
		r := toolsRun(t, box, "record_search", `{"id":"`+tc.id+`"`+tc.more+`}`)
		var doc recordFound
		if err := json.Unmarshal(r.Structured, &doc); err != nil || r.IsError || doc.Incomplete {
			t.Fatalf("%s: %v: %+v", tc.name, err, r)
		}
		got := []string{}
		for _, m := range doc.Matches {
			got = append(got, fmt.Sprintf("%d@%d", m.Line, m.Byte))
		}
		if s := strings.Join(got, " "); s != tc.lines || tc.text != "" && r.Text != tc.text {
			t.Errorf("%s: %q, want %q\n%q, want %q", tc.name, s, tc.lines, r.Text, tc.text)
		}
		if len(r.Text) > 2000 {
			t.Errorf("%s: %d bytes", tc.name, len(r.Text))
		}
	}
	binary := put("result", "", "\x00")
	for args, want := range map[string]string{
		`{"id":"` + id + `","pattern":"("}`: "pattern", `{"id":"` + id + `"}`: "pattern", `{"id":"` + id + `","pattern":""}`: "pattern", `{"pattern":"a"}`: "id", `{"id":"r-none","pattern":"a"}`: "there is no record",
		`{"id":"` + binary + `","pattern":"a"}`: "is binary", `{"id":"` + id + `","pattern":"a","limit":0}`: "limit", `{"id":"` + id + `","pattern":"a","context":21}`: "context", `{"id":"` + id + `","pattern":"a","path":"x"}`: "path",
	} {
		if r := toolsRun(t, box, "record_search", args); !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
}

// A search ends at its bounds of time and size and says that it is not complete.
func TestRecordSearchBounds(t *testing.T) {
	t.Parallel()
	box, put := recordBox(t)
	id := put("result", "", strings.Repeat("line\n", 5000))
	d := recordDesk{func(context.Context) (*vault, error) { return box.vault, nil }, func(s string) string { return s }}
	call := toolCall{Args: json.RawMessage(`{"id":"` + id + `","pattern":"line"}`)}
	r, err := d.search(t.Context(), call, -time.Second)
	if err != nil || !strings.Contains(r.Text, "incomplete") || !bytes.Contains(r.Structured, []byte(`"incomplete":true`)) {
		t.Errorf("out of time: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.search(ctx, call, time.Minute); err == nil {
		t.Error("a cancelled search answers")
	}
}
