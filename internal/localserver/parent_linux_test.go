package localserver

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestServerEndsWithItsParent kills a process that has started a server.
func TestServerEndsWithItsParent(t *testing.T) {
	// The orphaned server becomes a child of this process, which can so see it end, and leaves nothing behind.
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER of prctl(2)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		t.Fatalf("prctl: %v", errno)
	}
	parent := commandAs("parent")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	_, scanErr := fmt.Fscan(output, &pid)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	if scanErr != nil {
		t.Fatalf("read the server's process id: %v", scanErr)
	}
	for deadline := time.After(10 * time.Second); ; {
		ended, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if err != nil {
			t.Fatalf("wait for process %d: %v", pid, err)
		}
		if ended == pid {
			return
		}
		select {
		case <-deadline:
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d outlives its parent", pid)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
