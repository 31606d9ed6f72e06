package localserver

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tests is an m of one function.
type tests func() int

func (f tests) Run() int { return f() }

// recorder is a test that keeps how it ended, and ends there.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper()        {}
func (r *recorder) Skip(v ...any)  { r.stop("skip: " + fmt.Sprint(v...)) }
func (r *recorder) Fatal(v ...any) { r.stop("fatal: " + fmt.Sprint(v...)) }
func (r *recorder) Fatalf(f string, v ...any) {
	r.stop("fatal: " + fmt.Sprintf(f, v...))
}

func (r *recorder) stop(end string) {
	r.end = end
	runtime.Goexit()
}

// ending returns how a test ends that calls f, "" if it does not stop there.
func ending(f func(testing.TB)) string {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.end
}

// inModule makes the working directory a folder of a module that has these tools, and returns the module's.
func inModule(t *testing.T, tools ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range append(tools, "../go.mod", "../a/b/c") {
		path := filepath.Join(root, ".tools", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "a", "b"))
	return root
}

func newServer() *Server {
	return &Server{
		Package: "pkg", Variable: "LOCALSERVER_TEST_ENDPOINT", Tool: "bin/server",
		Command: func(_ string, port int) *exec.Cmd { return serverCommand(port) },
	}
}

func TestServerRunsOnceUntilTheTestsEnd(t *testing.T) {
	inModule(t, "bin/server")
	s := newServer()
	var pid int
	code := s.StopAfter(tests(func() int {
		url := s.Start(t)
		if again := s.Start(t); again != url {
			t.Errorf("second Start = %q; want %q again", again, url)
		}
		response, err := http.Get(url)
		if err != nil {
			t.Error(err)
		} else {
			_ = response.Body.Close()
			http.DefaultClient.CloseIdleConnections()
		}
		pid = s.running.handle.Pid
		return 7
	})).Run()
	if code != 7 {
		t.Errorf("Run = %d; want what the tests returned, 7", code)
	}
	if isAlive(pid) {
		t.Errorf("process %d is alive after the tests", pid)
	}
}

func TestStartEnds(t *testing.T) {
	const missing = ".tools/bin/server is not installed (stat "
	for _, test := range []struct {
		name  string
		tools []string
		ci    string
		with  func(*Server)
		want  []string // what the end has, the first one at its beginning
	}{
		{name: "not installed", want: []string{"skip: pkg: " + missing, "run `make tools`, or set LOCALSERVER_TEST_ENDPOINT"}},
		{name: "not installed in CI", ci: "true", want: []string{"fatal: pkg: " + missing}},
		{
			name: "nothing stops it", tools: []string{"bin/server"},
			want: []string{"fatal: pkg: TestMain does not call pkg.StopAfter"},
		},
		{
			name: "after the tests", tools: []string{"bin/server"},
			with: func(s *Server) { s.StopAfter(tests(func() int { return 0 })).Run() },
			want: []string{"fatal: pkg: the server is stopped already"},
		},
		{
			name: "broken", tools: []string{"bin/server"},
			with: func(s *Server) {
				s.StopAfter(nil)
				s.Command = func(string, int) *exec.Cmd { return exec.Command("/bin/false") }
			},
			want: []string{"fatal: pkg: /bin/false for port ", "ended at once"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			inModule(t, test.tools...)
			t.Setenv("CI", test.ci)
			s := newServer()
			if test.with != nil {
				test.with(s)
			}
			end := ending(func(tb testing.TB) { s.Start(tb) })
			for i, part := range test.want {
				if at := strings.Index(end, part); at < 0 || i == 0 && at > 0 {
					t.Errorf("the test ended with %q; want %q", end, test.want)
				}
			}
		})
	}
}

func TestEndpointVariable(t *testing.T) {
	const url = "http://localhost:1"
	s := newServer()
	t.Setenv(s.Variable, url)
	if got := s.Start(t); got != url {
		t.Errorf("Start = %q; want the endpoint of the environment, %q", got, url)
	}
}

func TestTool(t *testing.T) {
	t.Setenv("CI", "")
	root := inModule(t, "bin/server")
	if diff := cmp.Diff(filepath.Join(root, ".tools", "bin", "server"), Tool(t, "bin/server")); diff != "" {
		t.Errorf("Tool (-want +got):\n%s", diff)
	}
	const missing = "skip: localserver: .tools/bin/other is not installed"
	if end := ending(func(tb testing.TB) { Tool(tb, "bin/other") }); !strings.HasPrefix(end, missing) {
		t.Errorf("without the tool the test ended with %q; want %q", end, missing)
	}
	t.Chdir("/")
	const outside = "skip: localserver: no go.mod in / or above it"
	if end := ending(func(tb testing.TB) { Tool(tb, "bin/server") }); !strings.HasPrefix(end, outside) {
		t.Errorf("outside of a module the test ended with %q; want %q", end, outside)
	}
}
