package main

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"log"
	"log/slog"
	"strings"
	"testing"
	"text/template"
)

// F21, the part about secrets: however a secret is printed, logged or marshalled, by itself or inside something, its value does not
// show.
func TestF21SecretNeverPrints(t *testing.T) {
	t.Parallel()
	const value = "hunter-two-value"
	s := secret(value)
	type holder struct {
		Name string
		S    secret `json:"s" xml:"s"`
		P    *secret
		L    []secret
	}
	h := holder{"n", s, &s, []secret{s}}
	var out bytes.Buffer
	for _, verb := range "vsqxXdtbcoOUeEfFgGTz" { // of %p and a misplaced %w fmt asks no type; vet, which each build runs, refuses them
		for _, flag := range []string{"", "+", "#", " ", "-40", ".3", "0"} {
			format := "%" + flag + string(verb) + "|"
			fmt.Fprintf(&out, format, s)
			fmt.Fprintf(&out, format, h)
			fmt.Fprintf(&out, format, &h)
			fmt.Fprintf(&out, format, []any{s, map[string]secret{"k": s}, map[secret]int{s: 1}, [1]secret{s}, namedSecret{"N", s}, struct{ Any any }{s}})
		}
	}
	fmt.Fprint(&out, s, &s, h)
	fmt.Fprintln(&out, s)
	fmt.Fprint(&out, errors.Join(fmt.Errorf("a %v", s), fmt.Errorf("b %w", fmt.Errorf("%s", s))), fmt.Sprintf("%[1]*[1]v", s), newRedactor([]namedSecret{{"N", s}}))
	fmt.Fprintf(&out, "%v %+v %#v", newRedactor([]namedSecret{{"N", s}}), newRedactor([]namedSecret{{"N", s}}), newRedactor([]namedSecret{{"N", s}}))
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, xml.Marshal} {
		b, err := marshal(holder{"n", s, nil, []secret{s}})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	if err := gob.NewEncoder(&out).Encode(holder{"n", s, &s, []secret{s}}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
		l.Info("x", "s", s, "h", holder{"n", s, nil, nil}, slog.Any("l", []secret{s}), slog.Group("g", "s", s))
		l.Info(fmt.Sprint(s))
	}
	log.New(&out, "", 0).Print(s, h)
	if err := template.Must(template.New("").Parse(`{{.S}} {{printf "%s" .S}} {{.L}}`)).Execute(&out, h); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, bad := range []string{"hunter", "68756e746572", "68756E746572", "104 117 110", "0x68"} {
		if i := strings.Index(got, bad); i >= 0 {
			t.Errorf("printed a secret: …%q", got[max(0, i-60):min(len(got), i+40)])
		}
	}
	if s.reveal() != value {
		t.Errorf("reveal = %q", s.reveal())
	}
}

// TestF21SecretFieldsAreExported: fmt asks an unexported field's type nothing, so a struct that holds a secret itself holds it in an
// exported one. A redactor prints nothing of its own.
func TestF21SecretFieldsAreExported(t *testing.T) {
	t.Parallel()
	type unsafe struct{ s secret }
	if got := fmt.Sprintf("%v", unsafe{"hunter-two"}); !strings.Contains(got, "hunter") {
		t.Error("fmt asks unexported fields now: this test can go")
	}
	_, files := layerFiles(t)
	for name, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if m, ok := n.(*ast.MapType); ok && holdsSecret(m.Key) {
				t.Errorf("%s has a map by secrets, whose keys JSON would show", name)
			}
			s, ok := n.(*ast.TypeSpec)
			if !ok || s.Name.Name == "redactor" {
				return true
			}
			st, ok := s.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range st.Fields.List {
				if !holdsSecret(field.Type) {
					continue
				}
				for _, id := range field.Names {
					if !id.IsExported() {
						t.Errorf("%s: %s.%s holds a secret, and fmt would show it", name, s.Name.Name, id.Name)
					}
				}
			}
			return true
		})
	}
}

// holdsSecret reports a type whose value has the bytes of a secret in it; a pointer or a function has not.
func holdsSecret(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "secret" || e.Name == "namedSecret" || e.Name == "httpScrub"
	case *ast.ArrayType:
		return holdsSecret(e.Elt)
	case *ast.MapType:
		return holdsSecret(e.Key) || holdsSecret(e.Value)
	}
	return false
}
