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
		"vault-modes": fakeVaultModes, "vault-locked": fakeVaultLocked, "vault-limited": fakeVaultLimited,
		"vault-resealer": fakeVaultResealer, "vault-holder": fakeVaultHolder,
		"audit-writer": fakeAuditWriter,
		"tai":          main,
		"stdio":        fakeStdioMain, "stdio-parent": fakeStdioParent, "bench-client": fakeBenchClient,
		"login-racer": fakeLoginRacer,
		"stuck":       fakeStuck, "browser": fakeBrowser,
		"change-crash":  fakeChangeCrash,
		"torture-vault": fakeTortureVault, "torture-log": fakeTortureLog, "torture-op": fakeTortureOp,
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
	os.Exit(runTests(m))
}

// runTests gives the tests and the processes that they start one folder for the key files of the vaults that they open themselves.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tai-test-keys-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Setenv("TAI_TEST_KEYS", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return m.Run()
}

// skipMissing ends a test for want of something on this machine. Where TAI_CI is set, which .ci/run does, everything must be there.
func skipMissing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("TAI_CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// testKeys is where the key files of vaults go that a test or a fake opens itself. A run of a whole command line has XDG_CONFIG_HOME and HOME.
func testKeys() vaultKeys { return vaultKeys{Dir: os.Getenv("TAI_TEST_KEYS")} }

// testEnv is an environment that names nothing but a config folder, in the way of each system.
func testEnv(dir string) func(string) string {
	return func(name string) string {
		switch name {
		case "XDG_CONFIG_HOME", "APPDATA", "HOME":
			return dir
		case "TAI_LOCAL_MODELS":
			return "off"
		}
		return ""
	}
}
