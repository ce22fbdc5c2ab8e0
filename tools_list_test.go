package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// nativeLater are tools of the list that do not exist yet.
var nativeLater []string

// The registry has the tools of the list, each with the arguments and the annotations that it was agreed to have, and no other; the README counts them, and the
// two that the holder of a key gets beside them.
func TestNativeToolsAreThoseAgreedOn(t *testing.T) {
	tools, err := (&app{root: t.TempDir()}).nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{}
	for _, tl := range tools {
		code[tl.Name] = nativeRow(t, tl)
	}
	f, err := os.Open("testdata/native-tools.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var listed []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, want, ok := strings.Cut(lines.Text(), " | ")
		if strings.HasPrefix(lines.Text(), "#") || !ok || slices.Contains(nativeLater, name) {
			continue
		}
		listed = append(listed, name)
		if code[name] != want {
			t.Errorf("%s is %q, the list wants %q", name, code[name], want)
		}
	}
	slices.Sort(listed)
	if got := slices.Sorted(maps.Keys(code)); !slices.Equal(got, listed) {
		t.Errorf("the registry has %d tools %q, the list %d %q", len(got), got, len(listed), listed)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	served := fmt.Sprintf("tai: serving %d tools over MCP", len(tools)+len(newServeChat(serveChatConfig{}).tools()))
	if !strings.Contains(string(readme), served) {
		t.Errorf("README.md does not say %q", served)
	}
}

// nativeRow writes a tool as the list has it.
func nativeRow(t *testing.T, tl tool) string {
	t.Helper()
	fields, err := jsonObject(tl.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var s argSchema
	if err := json.Unmarshal(tl.Schema, &s); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, f := range fields {
		if f.Key != "properties" {
			continue
		}
		props, err := jsonObject(f.Value)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range props {
			optional := "?"
			if slices.Contains(s.Required, p.Key) {
				optional = ""
			}
			args = append(args, p.Key+optional+":"+s.Properties[p.Key].short())
		}
	}
	mark := map[bool]string{true: "y", false: "n"}
	return fmt.Sprintf("%s | %s | %s | %s", orDash(strings.Join(args, ", ")), mark[tl.Hints.ReadOnly], mark[tl.Hints.Destructive], mark[tl.Hints.Idempotent])
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// short gives the type of a property as the list writes it.
func (s argSchema) short() string {
	name := strings.Join(s.types(), " or ")
	if name == "array" && s.Items != nil && len(s.Items.types()) == 1 {
		name = s.Items.types()[0] + "[]"
	}
	return strings.NewReplacer("integer", "int", "boolean", "bool").Replace(name)
}
