// This file is the top of the program: it hands the outside world to run and turns its answer into an exit code.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	_ "modernc.org/sqlite" // the vault's driver
)

// version is what tai says of itself; a release build sets it with -ldflags.
const version = "0.1.0"

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	fmt.Fprintln(stdout, "tai", version)
	return 0
}
