package store

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/store/internal/engine"
	lib "modernc.org/sqlite/lib"
)

// crashEnv makes this test binary the victim of TestKilledAtACheckpoint.
const crashEnv = "ELFHOST_TEST_STORE_CRASH"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		fmt.Println(victim(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// small are bounds that a test meets soon.
func small() bounds { return bounds{every: 1 << 20, most: 4 << 20} }

// long is a record of 8 KB.
func long(seq int64) Record {
	r := record(seq)
	r.Body = json.RawMessage(`"` + strings.Repeat("x", 8<<10) + `"`)
	return r
}

// recorded is a checkpoint's connection whose disk can fail, and which keeps
// what it was asked for.
type recorded struct {
	wal
	asked               string
	syncErr, checkpoint error
}

func (r *recorded) Sync() error {
	r.asked += "s"
	return errors.Join(r.syncErr, r.wal.Sync())
}

func (r *recorded) Checkpoint() (int, int, error) {
	r.asked += "c"
	frames, done, err := r.wal.Checkpoint()
	if r.checkpoint != nil {
		err = r.checkpoint
	}
	return frames, done, err
}

func disk(s *Store, r *recorded) {
	before := s.log.open
	s.log.open = func() (wal, error) {
		var err error
		r.wal, err = before()
		return r, err
	}
}

// fill writes until a checkpoint has begun, and waits for it.
func fill(t *testing.T, s *Store, w *Writer, from int64) (next int64) {
	t.Helper()
	due := func() int64 {
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		return s.log.due
	}
	for seq := from; ; seq++ {
		if seq > from+1000 {
			t.Fatal("no checkpoint begins")
		}
		before := due()
		must(t, w.Append(context.Background(), long(seq), false))
		if due() < before {
			s.log.group.Wait()
			return seq + 1
		}
	}
}

// What the checkpoint that catches up has to sync was synced before the writers
// wait for it.
func TestTheFileIsSyncedAhead(t *testing.T) {
	s := openTest(t)
	r := &recorded{}
	disk(s, r)
	s.log.bounds = bounds{every: 1 << 20, most: 700 << 10}
	pause := s.log.pause
	s.log.pause = func(f func()) { r.asked += "p"; pause(f) }
	fill(t, s, create(t, s, Session{}), 1)
	if r.asked != "cscscpc" {
		t.Errorf("the checkpoint did %q", r.asked)
	}
}

// A disk that has once failed to take what was written is not believed again:
// the file may lack pages that the log has.
func TestADiskThatRefuses(t *testing.T) {
	refusal := &engine.Error{Code: lib.SQLITE_IOERR_FSYNC, Message: "disk I/O error"}
	for name, r := range map[string]*recorded{"sync": {syncErr: refusal}, "checkpoint": {checkpoint: refusal}} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			disk(s, r)
			s.log.bounds = bounds{every: 1 << 20, most: 700 << 10}
			w := create(t, s, Session{ID: "x"})
			next := fill(t, s, w, 1)
			asked := r.asked
			for ; next < 1000; next++ {
				must(t, w.Append(context.Background(), long(next), false))
			}
			s.log.group.Wait()
			if r.asked != asked || s.log.pauses > 0 {
				t.Errorf("after the refusal of %q it did %q", asked, r.asked)
			}
			before, err := os.Stat(s.path + "-wal")
			must(t, err)
			must(t, s.Close())
			if after, err := os.Stat(s.path + "-wal"); err != nil || after.Size() != before.Size() {
				t.Errorf("the log was not kept: %v", err)
			}
			if n := len(all(t, openAt(t, s.path), "x")); n != int(next-1) {
				t.Errorf("%d of %d records", n, next-1)
			}
		})
	}
}

// A checkpoint that finds another one at work, say, is tried again.
func TestACheckpointThatFails(t *testing.T) {
	s := openTest(t)
	r := &recorded{checkpoint: &engine.Error{Code: lib.SQLITE_BUSY, Message: "database is locked"}}
	disk(s, r)
	s.log.bounds = bounds{every: 1 << 20, most: 700 << 10}
	w := create(t, s, Session{})
	next := fill(t, s, w, 1)
	if r.asked != "c" || s.log.pauses != 0 {
		t.Errorf("it did %q, and the writers waited %d times", r.asked, s.log.pauses)
	}
	r.checkpoint = nil
	fill(t, s, w, next)
	if s.log.pauses != 1 {
		t.Errorf("it did %q, and the writers waited %d times", r.asked, s.log.pauses)
	}
}

// A checkpoint that catches up keeps other processes' writers out, too: beside
// one that always writes, none would.
func TestNobodyWritesWhileTheLogIsCaughtUp(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	s, other := openAt(t, path), openAt(t, path)
	w := create(t, other, Session{})
	other.queue.patience = time.Millisecond
	s.queue.pause(func() { wants(t, w.Append(ctx, record(1), false), ErrLocked) })
	must(t, w.Append(ctx, record(1), false))
	must(t, create(t, s, Session{}).Append(ctx, record(1), false))
	// Where it cannot, it does what it can.
	s.queue.patience = time.Millisecond
	must(t, other.queue.tx.conn.Exec(`BEGIN IMMEDIATE`))
	ran := false
	if s.queue.pause(func() { ran = true }); !ran {
		t.Error("a lock of another process keeps a checkpoint from being done")
	}
	must(t, other.queue.tx.conn.Exec(`ROLLBACK`))
	must(t, create(t, s, Session{}).Append(ctx, record(1), false))
}

// A reader that takes its time keeps the log from beginning anew, and nothing
// else: writers go on, it sees what there was when it began, and the log begins
// anew when it is gone.
func TestALongReader(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	s.log.bounds = small()
	w := create(t, s, Session{ID: "x"})
	next := fill(t, s, w, 1)
	there, read := next-1, int64(0)
	for _, err := range s.Records(ctx, "x", 0) {
		must(t, err)
		if read++; read > 1 {
			continue
		}
		for range 30 {
			next = fill(t, s, w, next)
		}
		if n := s.queue.tx.conn.Frames(); n*frameSize < 25<<20 {
			t.Fatalf("the log has %d frames: the reader does not hold it", n)
		}
	}
	if read != there {
		t.Errorf("the reader saw %d records, and %d were there when it began", read, there)
	}
	for range 2 {
		next = fill(t, s, w, next)
	}
	if n := s.queue.tx.conn.Frames(); n*frameSize > 4<<20 {
		t.Errorf("the log has %d frames when the reader is gone", n)
	}
	if n := len(all(t, s, "x")); n != int(next-1) {
		t.Errorf("%d of %d records", n, next-1)
	}
}

// What is copied and removed is in the log like what is appended.
func TestAForkIsBroughtHome(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{ID: "x"})
	for seq := int64(1); seq <= 300; seq++ {
		must(t, w.Append(ctx, long(seq), false))
	}
	s.log.bounds = bounds{every: 6 << 20, most: 64 << 20}
	r := &recorded{}
	disk(s, r)
	_, err := s.Fork(ctx, "x", Session{ID: "y"})
	must(t, err)
	if s.log.group.Wait(); r.asked != "c" {
		t.Errorf("the checkpoint after a copy of 2.4 MB did %q", r.asked)
	}
}

// Closing while there is much to do: what was told to be durable is there, the
// rest was refused.
func TestCloseWhileInUse(t *testing.T) {
	ctx := context.Background()
	for range 20 {
		s := openTest(t)
		s.log.bounds = bounds{every: 64 << 10, most: 128 << 10}
		var wg sync.WaitGroup
		var kept [4]int
		for i := range kept {
			w := create(t, s, Session{ID: strconv.Itoa(i)})
			wg.Go(func() {
				for seq := int64(1); w.Append(ctx, long(seq), false) == nil; seq++ {
					kept[i]++
				}
			})
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		for range 2 {
			wg.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		again := openAt(t, s.path)
		for i, want := range kept {
			if n := len(all(t, again, strconv.Itoa(i))); n != want {
				t.Errorf("%d of %d records", n, want)
			}
		}
	}
}

// victim appends until it is killed, with a checkpoint every few records, and
// prints the number of each record that is durable.
func victim(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	s.log.bounds = bounds{every: 64 << 10, most: 128 << 10}
	w, err := s.Claim(ctx, "x")
	if err != nil {
		return err
	}
	m, err := s.Session(ctx, "x")
	for seq := m.Records + 1; err == nil; seq++ {
		if err = w.Append(ctx, long(seq), false); err == nil {
			_, err = fmt.Println(seq)
		}
	}
	return err
}

// Kill -9 in all phases of a checkpoint, while one is always running: nothing
// that was durable is lost, and the file is whole.
func TestKilledAtACheckpoint(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path)
	create(t, s, Session{ID: "x"})
	must(t, s.Close())
	exe, err := os.Executable()
	must(t, err)
	for round := range rounds {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), crashEnv+"="+path)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		var told int64
		for in := bufio.NewScanner(out); in.Scan(); {
			n, err := strconv.ParseInt(in.Text(), 10, 64)
			if err != nil {
				t.Errorf("the victim said %q", in.Text())
				break
			}
			if told == 0 {
				time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = cmd.Process.Kill() })
			}
			told = max(told, n)
		}
		_ = cmd.Wait() // it was killed
		s, err := Open(ctx, path)
		must(t, err)
		m, err := s.Session(ctx, "x")
		if must(t, err); m.Records < told || told == 0 {
			t.Fatalf("round %d: %d records, and %d were durable", round, m.Records, told)
		}
		if round%10 == 9 || round == rounds-1 {
			var whole string
			must(t, s.read.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&whole))
			if n := len(all(t, s, "x")); whole != "ok" || n != int(m.Records) {
				t.Fatalf("round %d: %d of %d records, %s", round, n, m.Records, whole)
			}
		}
		must(t, s.Close())
	}
}
