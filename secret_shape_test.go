package main

import (
	"strings"
	"testing"
)

// The password of each form of connection string is found as it is written, whatever letters stand before it; other texts have none.
func TestPasswordIn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{"postgres://app:p%40ss-word@db:5432/x", "p%40ss-word"},
		{"postgres://app@db:5432/x", ""},
		{"postgres://db/x?mail=a:b@c", ""},
		{"app:pass-word@tcp(db:3306)/x", "pass-word"},
		{"host=db user=app password=pass-word sslmode=off", "pass-word"},
		{"Server=db;Uid=app;PWD=pass-word;", "pass-word"},
		{"AccountName=a;AccountKey=abc/def==;Suffix=x", "abc/def=="},
		{"password=pass-word", ""},                                       // alone it is no connection string
		{"Server=Ⱥ;Password=pass-word;", "pass-word"},                    // small it has one byte more
		{"Server=" + strings.Repeat("Ⱥ", 40) + ";Password=p", "p"},       // beyond the text's end
		{"Server=\u212a;Password=pass-word;", "pass-word"},               // small it has two bytes less
		{"Server=\xff\xfe;Password=pass-word;", "pass-word"},             // no UTF-8
		{strings.Repeat("x", 4<<10) + "postgres://app:pass-word@db", ""}, // too long for one
	} {
		span, ok := passwordIn(tc.text)
		got := ""
		if ok {
			got = span.of(tc.text)
		}
		if got != tc.want {
			t.Errorf("passwordIn(%q) = %q, want %q", tc.text, got, tc.want)
		}
	}
}

// No text makes the search for passwords and tokens fail.
func FuzzSecretShapes(f *testing.F) {
	for _, s := range []string{"", "a://b:c@d", "Ⱥ password=x=1", "x:y@tcp(z)", "%", "%4", "eyJ.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if span, ok := passwordIn(s); ok && span.of(s) == "" {
			t.Errorf("an empty password in %q", s)
		}
		for _, e := range []serverEntry{{Name: s, URL: s}, {Name: "n", Args: []string{s, s}}, {Name: "n", Env: map[string]string{s: s}, Headers: map[string]string{s: s}}} {
			masked := maskedEntry(e)
			for _, n := range entrySecrets(e) {
				if v := n.Value.reveal(); strings.Contains(masked.URL, v) && !strings.Contains("[secret]", v) && strings.Count(e.URL, v) == 1 {
					t.Errorf("%q stands in %q", v, masked.URL)
				}
			}
		}
	})
}
