package child

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

const variable = "ONCEKIT_CHILD_TEST"

// TestMain is also the main of the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	err := Serve(os.Stdin, os.Stdout, func(line []byte) []byte {
		if string(line) == "end" {
			os.Exit(3)
		}
		return bytes.ToUpper(line)
	})
	if err != nil {
		os.Exit(1)
	}
}

func start(t *testing.T) *Process {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), variable+"=1")
	p, err := Start(command)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAsk(t *testing.T) {
	p := start(t)
	for _, line := range []string{"a", "", "long" + string(bytes.Repeat([]byte("x"), 1<<17))} {
		answer, err := p.Ask([]byte(line))
		if want := bytes.ToUpper([]byte(line)); err != nil || !bytes.Equal(answer, want) {
			t.Errorf("answer to %d bytes is %.20q, %v; want %.20q", len(line), answer, err, want)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*Process){
		"killed": func(p *Process) {
			p.Kill()
			p.Wait()
		},
		"by itself": func(p *Process) {
			if _, err := p.Ask([]byte("end")); !errors.Is(err, ErrEnded) {
				t.Errorf("the process that ends answers: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			end(p)
			if _, err := p.Ask([]byte("a")); !errors.Is(err, ErrEnded) {
				t.Errorf("error is %v; want ErrEnded", err)
			}
			if err := p.Close(); err == nil {
				t.Error("Close says that it ended well")
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	if _, err := Start(exec.Command(t.TempDir() + "/nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v; want os.ErrNotExist", err)
	}
}
