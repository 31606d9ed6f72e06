package redistest

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the server when the test process dies without a word: a panic in a goroutine, a test
// timeout, kill -9.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
