package main

import (
	"fmt"
	"os"
	"testing"
)

// testFakes are the programs that the test binary can play when it is started again with TAI_TEST_FAKE set.
// Each entry lives in the test file of its concern.
func testFakes() map[string]func() {
	return map[string]func(){
		"vault-writer": fakeVaultWriter, "vault-registrar": fakeVaultRegistrar,
		"vault-modes": fakeVaultModes, "vault-locked": fakeVaultLocked,
		"audit-writer": fakeAuditWriter,
		"tai":          main,
		"stdio":        fakeStdioMain, "stdio-parent": fakeStdioParent, "bench-client": fakeBenchClient,
		"stuck": fakeStuck,
	}
}

func TestMain(m *testing.M) {
	if name := os.Getenv("TAI_TEST_FAKE"); name != "" {
		fake, ok := testFakes()[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no fake %q\n", name)
			os.Exit(2)
		}
		fake()
		os.Exit(0)
	}
	os.Exit(m.Run())
}
