// This file holds TOML's scalars: the types that keep numbers, dates and times as written, and pure functions that judge a word or a
// character by TOML 1.0's grammar. It knows nothing of documents, keys or positions.
package main

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// tomlNumber is an integer or a float as it was written (sign, base prefix and underscores kept), for settings that want numbers as text.
type tomlNumber struct {
	Text  string
	Float bool
}

// integer gives the value of an integer and false for a float. parseTOML has checked that it fits.
func (n tomlNumber) integer() (int64, bool) {
	if n.Float {
		return 0, false
	}
	v, err := tomlInt(n.Text)
	return v, err == nil
}

type tomlTimeKind int

const (
	tomlOffsetDateTime tomlTimeKind = iota + 1
	tomlLocalDateTime
	tomlLocalDate
	tomlLocalTime
)

// tomlTime is a date, a time or both, checked against the calendar and kept as it was written.
type tomlTime struct {
	Kind tomlTimeKind
	Text string
}

// tomlInteger says whether s is an integer by its form.
func tomlInteger(s string) bool {
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'x':
			return tomlDigits(s[2:], tomlHexDigit)
		case 'o':
			return tomlDigits(s[2:], func(c byte) bool { return c >= '0' && c <= '7' })
		case 'b':
			return tomlDigits(s[2:], func(c byte) bool { return c == '0' || c == '1' })
		}
	}
	s = tomlUnsigned(s)
	return tomlDigits(s, tomlDigit) && (len(s) == 1 || s[0] != '0')
}

// tomlInt gives the value of what tomlInteger accepts.
func tomlInt(s string) (int64, error) {
	base := 10
	if len(s) > 2 && s[0] == '0' {
		base = 0 // the prefix says it
	}
	return strconv.ParseInt(strings.ReplaceAll(s, "_", ""), base, 64)
}

// tomlFloat says whether s is a float by its form: an integer part and then a fraction, an exponent or both; inf; nan.
func tomlFloat(s string) bool {
	s = tomlUnsigned(s)
	if s == "inf" || s == "nan" {
		return true
	}
	exp := len(s)
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp = i
		if !tomlDigits(tomlUnsigned(s[i+1:]), tomlDigit) {
			return false
		}
	}
	whole, fraction, dot := strings.Cut(s[:exp], ".")
	return tomlInteger("+"+whole) && (!dot || tomlDigits(fraction, tomlDigit)) && (dot || exp < len(s))
}

// tomlDigits says whether s is digits with single underscores between them.
//
//go:noinline for size: it is called in many places
func tomlDigits(s string, digit func(byte) bool) bool {
	for i := range len(s) {
		if !digit(s[i]) && (s[i] != '_' || i == 0 || i == len(s)-1 || s[i-1] == '_') {
			return false
		}
	}
	return s != ""
}

// tomlUnsigned takes one sign off.
func tomlUnsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

// tomlTimeKindOf gives the kind of a date or time as RFC 3339 writes them, 0 if s is none.
func tomlTimeKindOf(s string) tomlTimeKind {
	const date = len("2006-01-02")
	if len(s) == date && tomlDate(s) {
		return tomlLocalDate
	}
	dated := len(s) > date && tomlDate(s[:date]) && strings.IndexByte("Tt ", s[date]) >= 0
	if dated {
		s = s[date+1:]
	}
	rest, ok := tomlClock(s)
	switch {
	case !ok:
		return 0
	case rest == "" && dated:
		return tomlLocalDateTime
	case rest == "":
		return tomlLocalTime
	case dated && tomlOffset(rest):
		return tomlOffsetDateTime
	}
	return 0
}

// tomlDate checks YYYY-MM-DD against the calendar.
func tomlDate(s string) bool {
	if !tomlShape(s, "dddd-dd-dd") {
		return false
	}
	year, month, day := tomlTwo(s)*100+tomlTwo(s[2:]), tomlTwo(s[5:]), tomlTwo(s[8:])
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if month < 1 || month > 12 {
		return false
	}
	last := days[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		last = 29
	}
	return day >= 1 && day <= last
}

// tomlClock checks HH:MM:SS with an optional fraction and gives what follows. Second 60 is taken (RFC 3339, leap seconds; which
// minutes have one is not checked).
func tomlClock(s string) (rest string, ok bool) {
	if !tomlShape(s, "dd:dd:dd") || tomlTwo(s) > 23 || tomlTwo(s[3:]) > 59 || tomlTwo(s[6:]) > 60 {
		return "", false
	}
	rest = s[len("15:04:05"):]
	if fraction, dot := strings.CutPrefix(rest, "."); dot {
		rest = strings.TrimLeft(fraction, "0123456789")
		return rest, len(rest) < len(fraction)
	}
	return rest, true
}

// tomlOffset checks Z or ±HH:MM.
func tomlOffset(s string) bool {
	if s == "Z" || s == "z" {
		return true
	}
	n := tomlUnsigned(s)
	return len(s) == len("+07:00") && len(n) < len(s) && tomlShape(n, "dd:dd") && tomlTwo(n) <= 23 && tomlTwo(n[3:]) <= 59
}

// tomlShape says whether s starts in the given shape, where d stands for any digit.
func tomlShape(s, shape string) bool {
	if len(s) < len(shape) {
		return false
	}
	for i := range len(shape) {
		if shape[i] != s[i] && (shape[i] != 'd' || !tomlDigit(s[i])) {
			return false
		}
	}
	return true
}

// tomlTwo gives the value of the two digits that s starts with.
func tomlTwo(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

// --- characters ---

// tomlControl says whether c may stand in no comment and no string; line ends count as such.
func tomlControl(c byte) bool { return c < 0x20 && c != '\t' || c == 0x7f }

func tomlDigit(c byte) bool { return c >= '0' && c <= '9' }

func tomlHexDigit(c byte) bool { return tomlDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func tomlBareKey(c byte) bool {
	return tomlDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

func tomlBareValue(c byte) bool { return tomlBareKey(c) || c == '+' || c == '.' || c == ':' }

// tomlBadUTF8 gives the offset of the first byte that is not UTF-8, -1 if all is.
func tomlBadUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	at := 0
	for {
		c, n := utf8.DecodeRuneInString(s[at:])
		if c == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
}
