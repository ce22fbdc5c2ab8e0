//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeVaultLimited writes secrets under a limit of a file's size until that fails, says how, and reads what there is.
func fakeVaultLimited() {
	limit, err := strconv.ParseUint(os.Getenv("TAI_TEST_LIMIT"), 10, 64)
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, home := context.Background(), os.Getenv("TAI_HOME")
	v, err := openVault(ctx, home, vaultWrite, time.Now, testKeys())
	n := 0
	if err == nil {
		for ; err == nil && n < 1000; n++ {
			err = v.putSecret(ctx, "", fmt.Sprintf("L%d", n), secret(bytes.Repeat([]byte("y"), 2000)), nil)
		}
		n--
		fmt.Println("wrote", n)
		list, readErr := v.secrets(ctx)
		fmt.Println("same", len(list), readErr, v.close())
	}
	fmt.Println("write:", err)
	v, err = openVault(ctx, home, vaultRead, time.Now, testKeys())
	if err != nil {
		fmt.Println("read:", err)
		return
	}
	list, err := v.secrets(ctx)
	fmt.Println("read", len(list), err, v.close())
}

// VLT-03: a limit of a file's size is a full disk too, whichever file meets it first.
func TestVLT03FileSizeLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		limit int
	}{
		{"the index", 16 << 10}, {"the journal", 160 << 10}, {"the journal, later", 600 << 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := t.TempDir()
			vaultMade(t, home)
			out, err := vaultProcess(t, "TAI_TEST_FAKE=vault-limited", "TAI_HOME="+home, "TAI_TEST_LIMIT="+strconv.Itoa(tc.limit)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			written, text := 0, string(out)
			if rest, ok := strings.CutPrefix(text, "wrote "); ok {
				if _, err := fmt.Sscanf(rest, "%d", &written); err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf("same %d <nil> <nil>\n", written+1); !strings.Contains(text, want) {
					t.Errorf("got %q, want %q", text, want)
				}
			}
			_, line, _ := strings.Cut(text, "write: ")
			line, _, _ = strings.Cut(line, "\n")
			sayDiskFull(t, tc.name, line)
			if want := fmt.Sprintf("read %d <nil> <nil>\n", written+1); !strings.Contains(text, want) {
				t.Errorf("got %q, want %q", text, want)
			}
			v := vaultAt(t, home)
			if err := v.putSecret(t.Context(), "", "AFTER", "x", nil); err != nil {
				t.Errorf("without the limit: %v", err)
			}
			if l, err := v.secrets(t.Context()); err != nil || len(l) != written+2 {
				t.Errorf("%d secrets, %v; want %d", len(l), err, written+2)
			}
		})
	}
}
