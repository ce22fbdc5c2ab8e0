// This file splits SQL text into statements and counts their parameters, as SQLite's own tokenizer sees them (https://sqlite.org/lang_expr.html, "Tokens").
// It checks no grammar and allows nothing: what a statement may do is decided where it is compiled.
package main

import (
	"strconv"
	"strings"
)

// sqlStatement is one statement of a text, without the semicolon and the comments behind it.
type sqlStatement struct {
	Text   string
	Word   string // its first word in capitals
	Params int    // values that its ?, ?N take
	Named  string // the first parameter that has a name; such are not given by position
}

// sqlScan walks over the tokens of a text.
type sqlScan struct {
	text string
	i    int
}

// sqlStatements splits a text. A semicolon inside a trigger's body ends nothing. A text that holds none gives an empty list.
func sqlStatements(text string) ([]sqlStatement, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, newError("sql holds a NUL byte")
	}
	var list []sqlStatement
	for s := (sqlScan{text: text}); s.i < len(text); {
		if st := s.statement(); st.Text != "" {
			list = append(list, st)
		}
	}
	return list, nil
}

// statement reads up to the next semicolon that ends a statement.
func (s *sqlScan) statement() (st sqlStatement) {
	from, to, highest := -1, 0, 0
	var words []string // the first few, and of a trigger the last one too
	last, trigger := "", false
	for {
		token := s.token()
		if token == "" {
			break
		}
		if token == ";" {
			if from < 0 || trigger && last != "END" {
				last = ";"
				continue
			}
			break
		}
		if from < 0 {
			from, st.Word = s.i-len(token), strings.ToUpper(token)
		}
		to = s.i
		switch token[0] {
		case '?':
			highest = sqlParam(token, highest)
		case ':', '@', '$', '#':
			if st.Named == "" && len(token) > 1 {
				st.Named = token
			}
		}
		before := last
		last = strings.ToUpper(token)
		if last == "END" && before != ";" {
			last = "" // of a CASE
		}
		if len(words) < 4 {
			words = append(words, strings.ToUpper(token))
			trigger = sqlTrigger(words)
		}
	}
	if from >= 0 {
		st.Text, st.Params = s.text[from:to], highest
	}
	return st
}

// sqlTrigger reports the first words of a statement that makes a trigger, whose body has semicolons of its own.
func sqlTrigger(words []string) bool {
	if len(words) > 0 && words[0] == "EXPLAIN" {
		words = words[1:]
	}
	if len(words) < 2 || words[0] != "CREATE" {
		return false
	}
	return words[1] == "TRIGGER" || len(words) > 2 && (words[1] == "TEMP" || words[1] == "TEMPORARY") && words[2] == "TRIGGER"
}

// sqlParam gives the highest number of a parameter so far: ?N names one, ? takes the next.
func sqlParam(token string, highest int) int {
	if n, err := strconv.Atoi(token[1:]); err == nil {
		return max(highest, n)
	}
	return highest + 1
}

// token gives the next token and leaves the cursor behind it; blanks and comments before it are skipped. It is "" at the end.
func (s *sqlScan) token() string {
	from := s.i
	for n := sqlTokenLen(s.text[from:]); n > 0; n = sqlTokenLen(s.text[from:]) {
		s.i = from + n
		switch c := s.text[from]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f', strings.HasPrefix(s.text[from:], "--"), strings.HasPrefix(s.text[from:], "/*"):
			from = s.i
			continue
		}
		return s.text[from:s.i]
	}
	s.i = len(s.text)
	return ""
}

// sqlTokenLen gives the bytes of the token at the start of text, blanks and comments being tokens too; 0 at the end.
func sqlTokenLen(text string) int {
	if text == "" {
		return 0
	}
	switch c := text[0]; {
	case strings.HasPrefix(text, "--"):
		return sqlUntil(text, 2, "\n")
	case strings.HasPrefix(text, "/*"):
		return sqlUntil(text, 2, "*/")
	case c == '\'' || c == '"' || c == '`':
		return sqlQuoted(text, c)
	case c == '[':
		return sqlUntil(text, 1, "]")
	case c == '?' || c == ':' || c == '@' || c == '$' || c == '#' || sqlNameByte(c):
		n := 1
		for n < len(text) && (sqlNameByte(text[n]) || text[n] == ':' && c == '$') {
			n++
		}
		return n
	}
	return 1
}

func sqlUntil(text string, from int, end string) int {
	if i := strings.Index(text[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(text)
}

// sqlQuoted gives the length of a quoted token, in which the quote stands for itself when it is doubled.
func sqlQuoted(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		if text[i] != quote {
			continue
		}
		if i+1 == len(text) || text[i+1] != quote {
			return i + 1
		}
		i++
	}
	return len(text)
}

func sqlNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

// sqlName writes a name as SQL has it.
//
//go:noinline for size: it is called in many places
func sqlName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// sqlHolds reports whether a word stands in a list of words.
func sqlHolds(list, word string) bool {
	return word != "" && strings.Contains(list, " "+strings.ToLower(word)+" ")
}
