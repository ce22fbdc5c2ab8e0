// Command toml-test writes the public TOML corpus of github.com/toml-lang/toml-test, as far as it holds for TOML 1.0.0, into a folder:
// valid/….toml with the wanted values in valid/….json, and invalid/….toml. It is a module of its own so that tai requires none of it.
//
//	(cd testdata/toml-test && go run . DIR) && TAI_TOML_CORPUS=DIR go test -run TOMLCorpus .
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tomltest "github.com/toml-lang/toml-test/v2"
)

const list = "files-toml-1.0.0" // the corpus's own list of what belongs to TOML 1.0.0

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: toml-test DIR")
		os.Exit(2)
	}
	n, err := write(tomltest.TestCases(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "toml-test:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files of %s\n", n, list)
}

// write copies the listed files into dir and gives their number.
func write(corpus fs.FS, dir string) (int, error) {
	names, err := fs.ReadFile(corpus, list)
	if err != nil {
		return 0, fmt.Errorf("read the list: %w", err)
	}
	n := 0
	for name := range strings.FieldsSeq(string(names)) {
		b, err := fs.ReadFile(corpus, name)
		if err != nil {
			return n, fmt.Errorf("read the corpus: %w", err)
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return n, fmt.Errorf("make a folder: %w", err)
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return n, fmt.Errorf("write the corpus: %w", err)
		}
		n++
	}
	return n, nil
}
