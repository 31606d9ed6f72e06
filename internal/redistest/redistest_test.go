package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStart has two servers at a time, which are two, take arguments, evict nothing, and end with their test.
func TestStart(t *testing.T) {
	var first, second string
	t.Run("running", func(t *testing.T) {
		first, second = Start(t), Start(t, "--maxmemory", "10mb")
		one, two := GoRedis(t, first), GoRedis(t, second)
		if err := one.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if n := two.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("the second server has %d keys of the first", n)
		}
		want := map[string]string{"maxmemory": "10485760", "maxmemory-policy": "noeviction"}
		got, err := two.ConfigGet(t.Context(), "maxmemory*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				delete(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
	})
	for _, address := range []string{first, second} {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			t.Errorf("the server at %s outlives its test", address)
		}
	}
}

// recorder is a test that keeps how it ended, and ends there.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper()        {}
func (r *recorder) Skip(v ...any)  { r.stop("skip: " + fmt.Sprint(v...)) }
func (r *recorder) Fatal(v ...any) { r.stop("fatal: " + fmt.Sprint(v...)) }

func (r *recorder) stop(end string) {
	r.end = end
	runtime.Goexit()
}

// ending returns how a test ends that starts a server.
func ending(t *testing.T) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Start(r)
	}()
	<-done
	return r.end
}

func TestStartEnds(t *testing.T) {
	const missing = "redistest: neither redis-server nor valkey-server is installed"
	t.Setenv("ONCEKIT_REDIS_SERVER", "")
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "")
	if end := ending(t); !strings.HasPrefix(end, "skip: "+missing) {
		t.Errorf("without a server the test ended with %q, want it skipped", end)
	}
	t.Setenv("CI", "true")
	if end := ending(t); !strings.HasPrefix(end, "fatal: "+missing) {
		t.Errorf("without a server in CI the test ended with %q, want it failed", end)
	}
	program := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no such luck\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ONCEKIT_REDIS_SERVER", program)
	if end := ending(t); !strings.HasPrefix(end, "fatal: redistest: "+program) || !strings.HasSuffix(end, "ended at once: no such luck") {
		t.Errorf("with a server that does not start the test ended with %q", end)
	}
}

func TestStartCluster(t *testing.T) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{StartCluster(t)}})
	defer client.Close()
	for _, key := range []string{"a", "b", "c"} {
		if err := client.Set(t.Context(), key, "v", 0).Err(); err != nil {
			t.Error(err)
		}
	}
}

// TestFaults checks of each fault what the client sees, and whether the request has reached the server.
func TestFaults(t *testing.T) {
	address := Start(t)
	direct := GoRedis(t, address)
	const script = "return {redis.call('INCR', KEYS[1])}"
	if err := direct.ScriptLoad(t.Context(), script).Err(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		fault   Fault
		fails   bool
		arrived string
	}{
		{"pass", Pass, false, "1"},
		{"drop", Drop, true, ""},
		{"lose reply", LoseReply, true, "1"},
		{"hang", Hang, true, "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy := NewProxy(t, address)
			client := GoRedis(t, proxy.Address, func(o *redis.Options) { o.MaxRetries = -1 })
			proxy.Script(test.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err := client.Eval(ctx, script, []string{test.name}).Err()
			if (err != nil) != test.fails {
				t.Errorf("error is %v; want one: %t", err, test.fails)
			}
			if arrived := direct.Get(t.Context(), test.name).Val(); arrived != test.arrived {
				t.Errorf("the server has %q; want %q", arrived, test.arrived)
			}
			if n := proxy.Scripts(); n != 1 {
				t.Errorf("%d scripts, want 1", n)
			}
			// What comes after the script passes, and what is no script always does.
			proxy.Script()
			if err := client.Eval(t.Context(), script, []string{"after"}).Err(); err != nil {
				t.Errorf("after the fault: %v", err)
			}
			proxy.Choose(func() Fault { return Drop })
			if err := client.Ping(t.Context()).Err(); err != nil {
				t.Errorf("a command that is no script: %v", err)
			}
			if err := client.Eval(t.Context(), script, []string{"after"}).Err(); err == nil {
				t.Error("what Choose drops has arrived")
			}
		})
	}
}

// installRedis runs scripts/install-redis with these programs in place of those on the PATH, and returns its output.
func installRedis(t *testing.T, ci string, programs map[string]string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bash", "dirname", "sh", "mktemp", "rm", "cat", "env"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("bash", filepath.Join("..", "..", "scripts", "install-redis"))
	command.Env = []string{"PATH=" + folder, "CI=" + ci}
	output, err := command.CombinedOutput()
	return string(output), err
}

func TestInstallRedis(t *testing.T) {
	for _, test := range []struct {
		name, ci string
		programs map[string]string
		says     string // empty: nothing
		fails    bool
	}{
		{"there", "true", map[string]string{"redis-server": ""}, "", false},
		{"valkey", "true", map[string]string{"valkey-server": ""}, "", false},
		{"root on Debian", "", map[string]string{"id": "echo 0", "apt-get": "exit 0"}, "installing the Debian package redis-server", false},
		{"not root", "", map[string]string{"id": "echo 1000", "apt-get": "exit 1"}, "tests on a Redis server are skipped", false},
		{"not root in CI", "true", map[string]string{"id": "echo 1000", "apt-get": "exit 1"}, "the tests need it", true},
		{"not Debian", "", map[string]string{"id": "echo 0"}, "tests on a Redis server are skipped", false},
		{"package fails", "", map[string]string{"id": "echo 0", "apt-get": "echo broken; exit 1"}, "could not install", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			output, err := installRedis(t, test.ci, test.programs)
			if (err != nil) != test.fails || !strings.Contains(output, test.says) || test.says == "" && output != "" {
				t.Errorf("%v: %s; want a failure: %t, and %q", err, output, test.fails, test.says)
			}
		})
	}
}
