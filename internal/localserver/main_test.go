package localserver

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// roleVariable makes this test binary be one of the processes that the tests need instead of running them.
const roleVariable = "LOCALSERVER_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleVariable); role {
	case "":
		goleak.VerifyTestMain(m)
	case "server":
		err = serve(os.Args[1])
	case "parent":
		err = startAndWait()
	case "deaf":
		err = listen(os.Args[1])
	case "short-lived":
		err = fmt.Errorf("server listening on http://127.0.0.1:%s\ncannot go on", os.Args[1])
	case "talkative":
		err = talk(os.Args[1])
	default:
		err = fmt.Errorf("%s is %q", roleVariable, role)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// serve answers on a port of 127.0.0.1 until it is killed.
func serve(port string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	fmt.Printf("server listening on http://%s\n", listener.Addr())
	return http.Serve(listener, http.NotFoundHandler())
}

// listen takes connections on a port of 127.0.0.1 and answers nothing.
func listen(port string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	fmt.Printf("server listening on http://%s\n", listener.Addr())
	select {}
}

// talk is serve with a line of 1 MB before each answer, as a server writes it that shows what it was asked for.
func talk(port string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	fmt.Printf("server listening on http://%s\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println(strings.Repeat("x", 1<<20))
	}))
}

// startAndWait starts a server, prints its process id, and waits to be killed.
func startAndWait() error {
	p, err := start(serverCommand)
	if err != nil {
		return err
	}
	fmt.Println(p.handle.Pid)
	select {}
}

// serverCommand returns the command that runs this test binary as a server.
func serverCommand(port int) *exec.Cmd { return commandAs("server", strconv.Itoa(port)) }

func commandAs(role string, args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), roleVariable+"="+role)
	return command
}
