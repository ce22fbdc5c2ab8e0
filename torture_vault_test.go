package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	tortureTools    = 3 // tools of each server
	tortureMessages = 3 // messages that are appended together
)

// fakeTortureVault opens the vault, writes, closes it and begins again, until it is killed. After each call that returned
// it says what was acknowledged.
func fakeTortureVault() {
	ctx := context.Background()
	w := &tortureWriter{r: tortureRand(), id: os.Getenv("TAI_TEST_ID")}
	fmt.Println("up")
	for {
		v, err := tortureOpen(ctx, os.Getenv("TAI_HOME"), vaultWrite, os.Getenv("TAI_TEST_NEWER") != "")
		tortureFail(err)
		for range 1 + w.r.IntN(20) {
			tortureFail(w.step(ctx, v))
		}
		tortureFail(v.close())
	}
}

// tortureWriter is one writing process; names start with its id, and n counts them.
type tortureWriter struct {
	r       *rand.Rand
	id      string
	n       int
	session string
	mine    []string // secrets and records that can be deleted: "secret NAME", "record ID"
}

func (w *tortureWriter) name() string {
	w.n++
	return fmt.Sprintf("%s_%d", w.id, w.n)
}

// step does one thing and says it when it is done.
func (w *tortureWriter) step(ctx context.Context, v *vault) error {
	switch w.r.IntN(11) {
	case 0, 1:
		name := w.name()
		if err := v.putSecret(ctx, "", name, secret(tortureText(name)), nil); err != nil {
			return err
		}
		w.mine = append(w.mine, "secret "+name)
		fmt.Println("secret", name)
	case 2:
		return w.server(ctx, v)
	case 3:
		name := w.name()
		info, err := v.putRecord(ctx, "torture", name, "", []byte(tortureText(name)))
		if err != nil {
			return err
		}
		fmt.Println("record", name, info.ID)
		w.mine = append(w.mine, "record "+name+" "+info.ID)
	case 4:
		return w.messages(ctx, v)
	case 10:
		return w.remember(ctx, v)
	case 5:
		name := w.name()
		if err := v.setSetting(ctx, name, tortureText(name)); err != nil {
			return err
		}
		fmt.Println("setting", name)
	case 6:
		w.n++
		if err := v.putSecret(ctx, "", "COUNTER_"+w.id, secret(fmt.Sprint(w.n)), nil); err != nil {
			return err
		}
		fmt.Println("counter", w.id, w.n)
	case 7:
		return w.delete(ctx, v)
	case 8:
		var busy, frames, moved int
		return v.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	case 9:
		return w.reseal(ctx, v)
	}
	return nil
}

// reseal changes the seal. What it was does not matter here, nor that another process reads old bytes meanwhile.
func (w *tortureWriter) reseal(ctx context.Context, v *vault) error {
	var err error
	switch w.r.IntN(4) {
	case 0:
		_, err = v.unseal(ctx)
	case 1:
		_, err = v.sealWithKeyFile(ctx)
	default:
		if _, err = v.rekey(ctx); errors.Is(err, errNotSealed) {
			err = nil
		}
	}
	return err
}

func tortureServer(name string) (serverEntry, []toolRow) {
	text := tortureText(name)
	var tools []toolRow
	for i := range tortureTools {
		tools = append(tools, toolRow{Tool: fmt.Sprint("t", i), Description: text, Schema: []byte(`{"type":"object"}`), Hash: sha256Hex([]byte(text))})
	}
	return serverEntry{Name: name, Transport: "stdio", Command: "true", Env: map[string]string{"KEY": text}, Source: "explicit"}, tools
}

func (w *tortureWriter) server(ctx context.Context, v *vault) error {
	entry, tools := tortureServer(w.name())
	if err := v.putServer(ctx, entry, profileDefault, true, tools, 1<<20); err != nil {
		return err
	}
	fmt.Println("server", entry.Name)
	return nil
}

func (w *tortureWriter) messages(ctx context.Context, v *vault) error {
	if w.session == "" || w.r.IntN(8) == 0 {
		name := w.name()
		id, err := v.createSession(ctx, sessionInfo{Profile: profileDefault, Title: name})
		if err != nil {
			return err
		}
		w.session = id
		fmt.Println("session", name, id)
	}
	name := w.name()
	var list []storedMessage
	for i := range tortureMessages {
		list = append(list, storedMessage{Role: "user", ToolCallID: fmt.Sprint(i), Content: tortureText(name)})
	}
	if err := v.appendMessages(ctx, w.session, list); err != nil {
		return err
	}
	fmt.Println("messages", name, w.session)
	return nil
}

// remember saves a memory and changes it up to three times: its text ends in the number of the texts before.
func (w *tortureWriter) remember(ctx context.Context, v *vault) error {
	name := w.name()
	for i := range 1 + w.r.IntN(4) {
		if _, _, err := v.saveMemory(ctx, memory{Key: name, Text: fmt.Sprint(name, " ", i)}); err != nil {
			return err
		}
		fmt.Println("memory", name, i)
	}
	return nil
}

func (w *tortureWriter) delete(ctx context.Context, v *vault) error {
	if len(w.mine) == 0 {
		return nil
	}
	i := w.r.IntN(len(w.mine))
	f := strings.Fields(w.mine[i])
	w.mine = append(w.mine[:i], w.mine[i+1:]...)
	fmt.Println("deleting", f[0], f[1])
	var err error
	if f[0] == "secret" {
		err = v.deleteSecret(ctx, "", f[1])
	} else {
		err = v.deleteRecord(ctx, f[2])
	}
	if err != nil {
		return err
	}
	fmt.Println("deleted", f[0], f[1])
	return nil
}

// tortureVaultWhole opens the vault after a crash and looks for anything broken: pages, rows of one deed without the others,
// an index that disagrees with its rows. Then every acknowledgement must hold.
func tortureVaultWhole(ctx context.Context, home string, mode vaultMode, newer bool, acks *tortureAcks) (err error) {
	v, err := tortureOpen(ctx, home, mode, newer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := tortureSound(ctx, v); err != nil {
		return err
	}
	if info, err := v.sealStatus(ctx); err != nil || mode == vaultWrite && info.Unwiped && v.unwiped == nil {
		return fmt.Errorf("%w: old bytes may be left (%v)", errTorture, err)
	}
	if newer {
		var ran int
		if err := v.db.QueryRowContext(ctx, `SELECT count(*) FROM torture_runs`).Scan(&ran); err != nil || ran != 1 {
			return fmt.Errorf("%w: the migration ran %d times (%v)", errTorture, ran, err)
		}
	}
	for key, id := range acks.there {
		kind, name, _ := strings.Cut(key, " ")
		if err := tortureThere(ctx, v, kind, name, id); err != nil {
			return fmt.Errorf("%w: %s: %w", errTorture, key, err)
		}
	}
	for key := range acks.gone {
		kind, name, _ := strings.Cut(key, " ")
		if kind != "secret" {
			continue // a record's id may be given again; tortureSound counts its index
		}
		if _, err := v.secretFor(ctx, "", name); !errors.Is(err, errNotFound) {
			return fmt.Errorf("%w: deleted %s is there (%v)", errTorture, key, err)
		}
	}
	for id, n := range acks.counter {
		var got int
		value, err := v.secretFor(ctx, "", "COUNTER_"+id)
		if err == nil {
			_, err = fmt.Sscan(value.reveal(), &got)
		}
		if err != nil || got < n {
			return fmt.Errorf("%w: counter %s is %d, acknowledged %d (%v)", errTorture, id, got, n, err)
		}
	}
	return nil
}

// tortureThere wants one acknowledged thing whole.
func tortureThere(ctx context.Context, v *vault, kind, name, id string) error {
	var got string
	want := tortureText(name)
	switch kind {
	case "secret":
		value, err := v.secretFor(ctx, "", name)
		if err != nil {
			return err
		}
		got = value.reveal()
	case "setting":
		var err error
		if got, err = v.setting(ctx, name); err != nil {
			return err
		}
	case "record":
		info, body, err := v.record(ctx, id)
		if err != nil {
			return err
		}
		if info.Origin != name {
			return fmt.Errorf("record %s belongs to %s", id, info.Origin)
		}
		got = string(body)
	case "memory":
		m, _, err := v.memory(ctx, name)
		var n, said int
		if err == nil {
			_, err = fmt.Sscanf(m.Text, name+" %d", &n)
		}
		if err == nil {
			_, err = fmt.Sscan(id, &said)
		}
		if err == nil && n < said {
			err = fmt.Errorf("change %d of memory %s is lost: %d", said, name, n)
		}
		return err
	case "server":
		row, err := v.server(ctx, name)
		if err != nil {
			return err
		}
		got = row.Env["KEY"]
	case "session":
		_, err := v.messages(ctx, id)
		return err
	case "messages":
		list, err := v.messages(ctx, id)
		if err != nil {
			return err
		}
		n := 0
		for _, m := range list {
			if m.Content == want {
				n++
			}
		}
		if n != tortureMessages {
			return fmt.Errorf("%d messages of %d", n, tortureMessages)
		}
		return nil
	}
	if got != want {
		return fmt.Errorf("%d bytes that are not the %d stored", len(got), len(want))
	}
	return nil
}

// tortureSound judges the vault without knowing what was acknowledged.
func tortureSound(ctx context.Context, v *vault) error {
	var sound string
	if err := v.db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
		return fmt.Errorf("integrity check: %q, %v", sound, err)
	}
	for what, query := range map[string]string{
		"servers without their profile, pins or tools": `
			SELECT count(*) FROM mcp_servers AS s
			WHERE (SELECT count(*) FROM mcp_server_profiles WHERE server = s.name) <> 1
				OR (SELECT count(*) FROM mcp_tool_pins WHERE server = s.name) <> 3
				OR (SELECT count(*) FROM mcp_server_tools WHERE server = s.name) <> 3`,
		"pins, tools and profiles without their server": `
			SELECT count(*) FROM (
				SELECT server FROM mcp_server_profiles UNION SELECT server FROM mcp_tool_pins UNION SELECT server FROM mcp_server_tools
			) WHERE server NOT IN (SELECT name FROM mcp_servers)`,
		"records without their index":    `SELECT count(*) FROM records WHERE text AND seq NOT IN (SELECT id FROM records_fts_docsize)`,
		"index rows without a record":    `SELECT count(*) FROM records_fts_docsize WHERE id NOT IN (SELECT seq FROM records)`,
		"messages without their index":   `SELECT count(*) FROM messages AS m JOIN sessions AS s ON s.id = m.session WHERE (s.seq << 32 | m.seq) NOT IN (SELECT id FROM messages_fts_docsize)`,
		"index rows without a message":   `SELECT count(*) FROM messages_fts_docsize WHERE id NOT IN (SELECT s.seq << 32 | m.seq FROM messages AS m JOIN sessions AS s ON s.id = m.session)`,
		"memories without their index":   `SELECT count(*) FROM memories WHERE seq NOT IN (SELECT id FROM memories_fts_docsize)`,
		"memory words without a memory":  `SELECT count(*) FROM memories_fts_docsize WHERE id NOT IN (SELECT seq FROM memories)`,
		"memories changed in part":       `SELECT count(*) FROM memories AS m WHERE text <> key || ' ' || (SELECT count(*) FROM memory_history WHERE memory = m.id)`,
		"messages appended in part":      `SELECT count(*) FROM (SELECT 1 FROM messages GROUP BY session, content HAVING count(*) <> 3)`,
		"sessions with a gap":            `SELECT count(*) FROM (SELECT 1 FROM messages GROUP BY session HAVING max(seq) <> count(*))`,
		"messages without their session": `SELECT count(*) FROM messages WHERE session NOT IN (SELECT id FROM sessions)`,
	} {
		var n int
		if err := v.db.QueryRowContext(ctx, query).Scan(&n); err != nil || n != 0 {
			return fmt.Errorf("%w: %d %s (%v)", errTorture, n, what, err)
		}
	}
	return tortureRecords(ctx, v)
}

// tortureRecords wants each record's body to fit its digest, and its name found by the index.
func tortureRecords(ctx context.Context, v *vault) error {
	return v.view(ctx, func(tx *sql.Tx) error {
		seqs := map[string]int64{}
		err := eachRow(ctx, tx, func(r *sql.Rows) error {
			var seq int64
			var origin, sum string
			var body []byte
			if err := r.Scan(&seq, &origin, &sum, &body); err != nil {
				return err
			}
			if sha256Hex(body) != sum {
				return fmt.Errorf("%w: the body of record %s does not fit its digest", errTorture, origin)
			}
			seqs[origin] = seq
			return nil
		}, `SELECT seq, origin, sha256, body FROM records`)
		if err != nil {
			return err
		}
		for origin, seq := range seqs {
			found := false
			err := eachRow(ctx, tx, func(r *sql.Rows) error {
				var hit int64
				err := r.Scan(&hit)
				found = found || hit == seq
				return err
			}, `SELECT rowid FROM records_fts WHERE records_fts MATCH ?`, `"`+strings.ReplaceAll(origin, "_", " ")+`"`)
			if err == nil && !found {
				err = fmt.Errorf("%w: the index does not know record %s", errTorture, origin)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// vaultLife kills so many rounds of writers on one home and looks at the vault after each.
func (x *torture) vaultLife(r *rand.Rand, dir string, rounds, writers int) error {
	home, acks := filepath.Join(dir, "home"), newTortureAcks()
	newerFrom := r.IntN(2 * rounds) // beyond the rounds: the schema stays
	for round := range rounds {
		type end struct {
			lines []string
			err   error
		}
		ends := make(chan end, writers)
		for i := range writers {
			env := []string{"TAI_HOME=" + home, fmt.Sprintf("TAI_TEST_SEED=%d", r.Uint64()), fmt.Sprintf("TAI_TEST_ID=W%d_%d", round, i)}
			if round >= newerFrom {
				env = append(env, "TAI_TEST_NEWER=1")
			}
			delay := tortureDelay(r, 80*writers)
			go func() {
				c, err := startTorture("torture-vault", env...)
				if err != nil {
					ends <- end{nil, err}
					return
				}
				lines, err := c.killAfter(delay)
				ends <- end{lines, err}
			}()
		}
		var fault error
		for range writers {
			e := <-ends
			fault = errors.Join(fault, e.err, acks.take(e.lines))
			x.kills.Add(1)
			x.acks.Add(int64(len(e.lines)))
		}
		if fault != nil {
			return fmt.Errorf("round %d: %w", round, fault)
		}
		mode := vaultWrite
		if r.IntN(2) == 0 {
			mode = vaultRead
		}
		ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
		err := tortureVaultWhole(ctx, home, mode, round >= newerFrom, acks)
		cancel()
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// VLT-02: a vault whose process is killed at any moment, from its creation on, is whole, and holds every acknowledged write.
func TestTortureVLT02Killed(t *testing.T) {
	tortureKill(t, [2]int{3, 5}, [2]int{100, 10}, func(x *torture, r *rand.Rand, dir string, rounds int) error { return x.vaultLife(r, dir, rounds, 1) })
}

// VLT-02, VLT-01: two processes write one vault and both are killed; the vault keeps what either was promised.
func TestTortureVLT02TwoWriters(t *testing.T) {
	tortureKill(t, [2]int{2, 4}, [2]int{30, 10}, func(x *torture, r *rand.Rand, dir string, rounds int) error { return x.vaultLife(r, dir, rounds, 2) })
}
