// This file tells what is likely a secret, by the name it stands under, by its own shape, and by where it stands in an address. It
// knows no vault and masks nothing.
package main

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	secretEnvMin   = 8  // bytes of a named value below which it is no secret worth hiding: flags and numbers
	passwordMin    = 6  // bytes of a password inside an address from which it is masked
	shapePrefixMin = 18 // bytes of a token that is known by its prefix
	shapeRandomMin = 32 // bytes of a token that is known by looking random alone
	shapeEntropy   = 4.1
)

// secretName reports a variable's, header's or field's name that speaks of a secret value. It errs towards yes, but not for the name
// of a place where one is kept.
func secretName(name string) bool {
	n := nameWords(name)
	for _, place := range [...]string{"_FILE", "_PATH", "_DIR", "_SOCK", "_URL", "_URI", "_ENDPOINT", "_NAME", "_TTL", "_TYPE", "_PUBLIC_KEY"} {
		if strings.HasSuffix(n, place) {
			return false
		}
	}
	for _, word := range [...]string{"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY", "PRIVATE", "AUTHORIZATION", "BEARER", "COOKIE"} {
		if strings.Contains(n, word) {
			return true
		}
	}
	last := n[strings.LastIndexByte(n, '_')+1:]
	switch last {
	case "KEY", "AUTH", "PAT", "PASS", "TOK", "PIN", "JWT", "PASSWD":
		return true
	case "PWD":
		return n != "PWD" && n != "OLD_PWD"
	}
	return false
}

// nameWords writes a name in capitals with _ between its words, apiKey as API_KEY.
func nameWords(name string) string {
	b := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-' || c == '.' || c == ' ':
			c = '_'
		case c >= 'A' && c <= 'Z' && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z':
			b = append(b, '_')
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

// textSpan is a stretch of a text, in bytes.
type textSpan struct{ start, end int }

func (s textSpan) of(text string) string { return text[s.start:s.end] }

// passwordIn finds the password of a connection string: of an address (scheme://user:password@host), of words (host=h
// password=p, Server=s;Pwd=p) or of Go's MySQL form (user:password@tcp(host)/name). The span is of the text as it is written.
func passwordIn(text string) (textSpan, bool) {
	if len(text) > 4<<10 {
		return textSpan{}, false
	}
	if i := strings.Index(text, "://"); i > 0 {
		rest := text[i+3:]
		if end := strings.IndexAny(rest, "/?# \t\n"); end >= 0 {
			rest = rest[:end]
		}
		at := strings.LastIndexByte(rest, '@')
		if at < 0 {
			return textSpan{}, false
		}
		colon := strings.IndexByte(rest[:at], ':')
		return textSpan{i + 3 + colon + 1, i + 3 + at}, colon >= 0 && colon+1 < at
	}
	if at := max(strings.Index(text, "@tcp("), strings.Index(text, "@unix(")); at > 0 {
		if colon := strings.IndexByte(text[:at], ':'); colon > 0 && colon+1 < at {
			return textSpan{colon + 1, at}, true
		}
	}
	lower := lowerASCII(text) // strings.ToLower may change the number of bytes
	for _, key := range [...]string{"password=", "pwd=", "accountkey=", "sharedaccesskey="} {
		i := strings.Index(lower, key)
		if i < 0 || i > 0 && !strings.ContainsRune("; \t&", rune(lower[i-1])) || !strings.ContainsAny(text[:i]+text[min(len(text), i+len(key)):], "=") {
			continue // alone it is no connection string
		}
		start := i + len(key)
		end := start + len(text[start:])
		if n := strings.IndexAny(text[start:], "; \t&"); n >= 0 {
			end = start + n
		}
		return textSpan{start, end}, end > start
	}
	return textSpan{}, false
}

// lowerASCII makes A to Z small and leaves every other byte in its place.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// valuePasswords gives what in a value is to be masked by itself, wherever it stands: the password of a connection string, as it is
// written and as it is meant. One that is an ordinary word would mask ordinary text and is left.
func valuePasswords(name, value string) []namedSecret {
	span, ok := passwordIn(value)
	if !ok {
		return nil
	}
	var out []namedSecret
	written := span.of(value)
	for _, p := range slices.Compact([]string{written, unescaped(written)}) {
		if len(p) >= passwordMin && !ordinaryWord(p) && !strings.Contains(p, "${") {
			out = append(out, namedSecret{Name: name, Value: secret(p)})
		}
	}
	return out
}

// unescaped decodes %XX as far as it is that (RFC 3986 2.1).
func unescaped(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && hexDigit(s[i+1]) >= 0 && hexDigit(s[i+2]) >= 0 {
			b = append(b, byte(hexDigit(s[i+1])<<4|hexDigit(s[i+2])))
			i += 2
		} else {
			b = append(b, s[i])
		}
	}
	return string(b)
}

func hexDigit(c byte) int { return strings.IndexByte(lowerDigits, c|0x20) }

// ordinaryWord reports a value that stands in text of all kinds, so that masking it would spoil them.
func ordinaryWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "null", "none", "undefined", "enabled", "disabled", "default", "admin", "administrator", "root", "user", "username", "guest", "test", "testing", "example", "sample", "demo",
		"localhost", "127.0.0.1", "0.0.0.0", "password", "passwd", "secret", "token", "apikey", "api_key", "api-key", "changeme", "change-me", "letmein", "welcome", "hello", "qwerty",
		"postgres", "postgresql", "mysql", "mariadb", "redis", "mongo", "mongodb", "rabbitmq", "sqlite", "database", "server", "client", "docker", "production", "development", "staging",
		"bearer", "basic", "authorization", "http", "https", "json", "utf-8", "string", "object", "number", "github", "gitlab", "google", "openai", "anthropic", "master", "main":
		return true
	}
	return len(s) < 8 && strings.Trim(s, "0123456789") == "" || strings.Trim(s, s[:min(1, len(s))]) == ""
}

// secretShape reports a value that looks like a token by itself: with a prefix that providers give theirs, a JSON Web Token, or long and
// random. Paths, UUIDs, hashes in hex, versions and words are none.
func secretShape(v string) bool {
	if strings.Trim(v, tokenLetters+"+/=~:") != "" || !utf8.ValidString(v) {
		return false
	}
	if len(v) >= shapePrefixMin {
		for _, prefix := range tokenPrefixes {
			if rest, ok := strings.CutPrefix(v, prefix); ok && strings.Trim(rest, tokenLetters+"+/=:") == "" && strings.ContainsAny(rest, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				return true
			}
		}
	}
	if strings.HasPrefix(v, "eyJ") && strings.Count(v, ".") == 2 {
		return true
	}
	return looksRandom(v)
}

// tokenPrefixes are what providers begin their tokens with, so that scanners find them.
var tokenPrefixes = [...]string{"sk-", "sk_", "rk_live_", "rk_test_", "pk_live_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "xoxb-", "xoxp-", "xoxa-", "xoxe-", "xapp-",
	"AKIA", "ASIA", "AIza", "ya29.", "GOCSPX-", "npm_", "pypi-", "hf_", "SG.", "dop_v1_", "shpat_", "shpss_", "lin_api_", "ntn_", "secret_", "figd_", "tvly-", "pplx-", "gsk_", "r8_", "whsec_", "sntrys_", "sntryu_",
	"vercel_", "sbp_", "PMAK-", "NRAK-", "dckr_pat_", "ATATT3x", "jina_", "ctx7sk-"}

// looksRandom reports a word of at least shapeRandomMin bytes with letters of both cases and digits in the mixture that chance gives.
func looksRandom(v string) bool {
	if len(v) < shapeRandomMin || strings.ContainsAny(v, "/.:~") && strings.Count(v, "/") > 2 || strings.HasPrefix(v, "/") {
		return false
	}
	lower, upper, digits, marks := 0, 0, 0, 0
	var count [256]int
	for i := range len(v) {
		count[v[i]]++
		switch c := v[i]; {
		case c >= 'a' && c <= 'z':
			lower++
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= '0' && c <= '9':
			digits++
		case c != '=':
			marks++
		}
	}
	if lower < 4 || upper < 4 || digits < 2 || marks*8 > len(v) {
		return false
	}
	entropy := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(v))
			entropy -= p * math.Log2(p)
		}
	}
	return entropy >= shapeEntropy
}
