// This file infers the types of the columns of a table from its values, and gives columns and tables names that SQL can use. It reads no file.
package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

const (
	tableColumns = 2000 // of one table, SQLite's own limit
	tableNameMax = 100  // bytes of the name of a table or column
)

// tableKind says what was seen in a column.
type tableKind uint8

const (
	tableInt    tableKind = 1 << iota // an integer of 64 bits
	tableWide                         // one that a real number may not hold exactly
	tableReal                         // another number
	tableText                         // anything else
	tableBool                         // true or false of JSON
	tableNested                       // an object or array of JSON
)

// tableExact is the largest integer up to which a real number holds each one.
const tableExact = 1 << 53

// tableColumn is a column of a table with what was seen in it.
type tableColumn struct {
	Name string
	kind tableKind
}

// text says the type of a column of a CSV file: one that holds anything but numbers is text as a whole, so that nothing is lost of 007 or of 1.50. So is one
// of real numbers and of integers which they cannot hold.
func (c tableColumn) text() string {
	switch {
	case c.kind&^(tableInt|tableWide|tableReal) != 0, c.kind == 0, c.kind&(tableWide|tableReal) == tableWide|tableReal:
		return "text"
	case c.kind&tableReal != 0:
		return "real"
	}
	return "integer"
}

// json says the type of a column of a JSON file, whose values have types of their own: mixed if these differ.
func (c tableColumn) json() string {
	switch c.kind &^ tableWide {
	case tableInt:
		return "integer"
	case tableReal:
		return "real"
	case tableInt | tableReal:
		if c.kind&tableWide == 0 {
			return "real"
		}
	case tableText, 0:
		return "text"
	case tableBool:
		return "boolean"
	case tableNested:
		return "json"
	}
	return "mixed"
}

// tableAffinity gives the declared type that keeps values of a type as they are (https://sqlite.org/datatype3.html, section 3.1).
func tableAffinity(kind string) string {
	switch kind {
	case "integer", "real", "text":
		return strings.ToUpper(kind)
	case "boolean":
		return "INTEGER"
	case "json":
		return "TEXT"
	}
	return "BLOB"
}

// tableCell says what a cell of a CSV file is. Numbers are those that come back as they are written: no sign of plus, no leading zeros, nothing that is not
// finite; blanks around them do not count.
func tableCell(b []byte) tableKind {
	i, n := 0, len(b)
	for i < n && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	for n > i && (b[n-1] == ' ' || b[n-1] == '\t') {
		n--
	}
	if b = b[i:n]; len(b) == 0 {
		return tableText
	}
	length := numberLen(b) // JSON's grammar has what is wanted
	if length != len(b) {
		return tableText
	}
	if bytes.ContainsAny(b, ".eE") || len(b) == 2 && b[0] == '-' && b[1] == '0' {
		if len(b) > 300 || bytes.ContainsAny(b, "eE") { // without an exponent fewer digits are never infinite
			if f, err := strconv.ParseFloat(string(b), 64); err != nil || math.IsInf(f, 0) {
				return tableText
			}
		}
		return tableReal
	}
	switch v, ok := tableInteger(b); {
	case !ok:
		return tableText
	case v > tableExact || v < -tableExact:
		return tableInt | tableWide
	}
	return tableInt
}

// tableInteger reads digits, which may have a minus in front; false if 64 bits do not hold them.
func tableInteger(b []byte) (int64, bool) {
	if len(b) > 18 {
		v, err := strconv.ParseInt(string(b), 10, 64)
		return v, err == nil
	}
	v, negative := int64(0), b[0] == '-'
	if negative {
		b = b[1:]
	}
	for _, c := range b {
		v = v*10 + int64(c-'0')
	}
	if negative {
		v = -v
	}
	return v, true
}

// tableColumnNames makes names of a header: as written but for blanks around them, c1, c2 … where there is none, and a number behind one that was there.
func tableColumnNames(header []string, count int) []tableColumn {
	columns, seen := make([]tableColumn, count), map[string]bool{}
	for i := range columns {
		name := ""
		if i < len(header) {
			name = tableName(header[i])
		}
		if name == "" {
			name = fmt.Sprintf("c%d", i+1)
		}
		columns[i].Name = uniqueName(seen, name)
	}
	return columns
}

// tableName takes off what no name can have.
func tableName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || hiddenRune(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > tableNameMax {
		s = strings.ToValidUTF8(s[:tableNameMax], "")
	}
	return strings.TrimSpace(s)
}

// uniqueName gives name, with a number behind it if it is taken; SQL does not tell case apart.
func uniqueName(seen map[string]bool, name string) string {
	try := name
	for n := 2; seen[strings.ToLower(try)]; n++ {
		try = fmt.Sprintf("%s_%d", name, n)
	}
	seen[strings.ToLower(try)] = true
	return try
}

// tableKeywords are words that are no names in SQL unless quoted, of those that files are called (https://sqlite.org/lang_keywords.html).
const tableKeywords = " add all alter and as between by case check collate commit constraint create default delete distinct drop else escape except exists foreign from" +
	" group having in index insert intersect into is isnull join limit not notnull null on or order primary references returning select set table then to" +
	" transaction union unique update using values when where with "

// tableNameOf makes a name of a file's: letters, digits and underscores, so that SQL takes it without quotes.
func tableNameOf(base string) string {
	if i := strings.LastIndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	name := strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, tableName(base))
	if name = strings.Trim(name, "_"); name == "" {
		return "t"
	}
	if name[0] >= '0' && name[0] <= '9' || strings.HasPrefix(strings.ToLower(name), "sqlite_") || strings.HasPrefix(strings.ToLower(name), "pragma_") {
		name = "t_" + name
	}
	if sqlHolds(tableKeywords, name) {
		name += "_"
	}
	return name
}
