package localserver

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// isAlive reports whether there is such a process. One that has ended and was not waited for is there as well.
func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestProcessStops(t *testing.T) {
	p, err := start(serverCommand)
	if err != nil {
		t.Fatal(err)
	}
	pid := p.handle.Pid
	if !isAlive(pid) {
		t.Errorf("process %d is not alive", pid)
	}
	response, err := http.Get(p.url)
	if err != nil {
		t.Errorf("%s does not answer: %v", p.url, err)
	} else {
		_ = response.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if isAlive(pid) {
		t.Errorf("process %d is alive after stop, or was not waited for", pid)
	}
	if _, err := http.Get(p.url); err == nil {
		t.Errorf("%s answers after stop", p.url)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop of a server that has ended: %v", err)
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	for _, test := range []struct {
		name, path string
		is         error
		says       string
	}{
		{name: "ends at once", path: "/bin/false", says: "/bin/false for port "},
		{name: "not there", path: filepath.Join(t.TempDir(), "nothing"), is: os.ErrNotExist, says: "nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := start(func(int) *exec.Cmd { return exec.Command(test.path) })
			if err == nil || !strings.Contains(err.Error(), test.says) || !errors.Is(err, test.is) && test.is != nil {
				t.Errorf("error is %v; want one that says %q", err, test.says)
			}
		})
	}
}

// TestStartTriesAnotherPort has somebody else take the port between its choice and its use.
func TestStartTriesAnotherPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var tries int
	p, err := start(func(port int) *exec.Cmd {
		if tries++; tries == 1 {
			port = taken.Addr().(*net.TCPAddr).Port
		}
		return serverCommand(port)
	})
	if err != nil {
		t.Fatal(err)
	}
	if tries != 2 {
		t.Errorf("start tried %d ports, want 2", tries)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// What a server writes is read to the end, however long its lines are: it would wait for that, and not answer.
func TestServerThatWritesALongLine(t *testing.T) {
	p, err := start(func(port int) *exec.Cmd { return commandAs("talkative", strconv.Itoa(port)) })
	if err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

func TestServerThatIsDeaf(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	_, err = startOn(commandAs("deaf", strconv.Itoa(port)), port, 500*time.Millisecond)
	if want := "does not answer within 500ms"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v; want one that says %q", err, want)
	}
}

// A server that has bound its port and ends is not waited for.
func TestServerThatEndsAfterItHasListened(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = startOn(commandAs("short-lived", strconv.Itoa(port)), port, startTimeout)
	for _, want := range []string{" ended at once: ", "cannot go on"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v; want one that says %q", err, want)
		}
	}
	if took := time.Since(begin); took > startTimeout/2 {
		t.Errorf("it took %v", took)
	}
}
