package localserver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installation is a folder with the scripts that `make tools` runs, and programs of this test's own in place of npm and
// node.
type installation struct {
	t        *testing.T
	root     string
	programs string
}

func newInstallation(t *testing.T) installation {
	t.Helper()
	in := installation{t: t, root: t.TempDir(), programs: t.TempDir()}
	scripts := os.DirFS(filepath.Join("..", "..", "scripts"))
	if err := os.CopyFS(filepath.Join(in.root, "scripts"), scripts); err != nil {
		t.Fatal(err)
	}
	return in
}

// write writes a file below root, and the folder that it is in.
func (in installation) write(name, text string) {
	in.t.Helper()
	path := filepath.Join(in.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		in.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		in.t.Fatal(err)
	}
}

// program makes a shell script the program of that name.
func (in installation) program(name, script string) {
	in.t.Helper()
	if err := os.WriteFile(filepath.Join(in.programs, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		in.t.Fatal(err)
	}
}

// run runs a script, and returns its output and error.
func (in installation) run(script string) (string, error) {
	command := exec.Command("sh", filepath.Join(in.root, "scripts", script))
	command.Env = append(os.Environ(), "PATH="+in.programs+":"+os.Getenv("PATH"), "ROOT="+in.root)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	return output.String(), err
}

// left returns the folders that installations work in.
func (in installation) left() []string {
	left, err := filepath.Glob(filepath.Join(in.root, ".tools", "install.*"))
	if err != nil {
		in.t.Fatal(err)
	}
	return left
}

func TestAKilledInstallationLeavesNothing(t *testing.T) {
	for _, script := range []string{"install-dynoxide.sh", "install-kinesalite"} {
		for _, signal := range []string{"HUP", "INT", "TERM"} {
			t.Run(script+" "+signal, func(t *testing.T) {
				in := newInstallation(t)
				in.program("npm", "touch \"$ROOT/npm-ran\"; kill -s "+signal+" $PPID\n")
				output, err := in.run(script)
				if err == nil {
					t.Errorf("the script has succeeded: %s", output)
				}
				if _, err := os.Stat(filepath.Join(in.root, "npm-ran")); err != nil {
					t.Errorf("the script did not get to npm: %s", output)
				}
				if left := in.left(); len(left) > 0 {
					t.Errorf("left are %q, want nothing", left)
				}
			})
		}
	}
}

// Two installations find an older version. The second moves away what it finds in place when the first has just put the
// pinned one there, which tests may be using already.
func TestTwoUpgradesOfKinesaliteAtOnce(t *testing.T) {
	in := newInstallation(t)
	in.write(".tools/kinesalite/package-lock.json", "an older one")
	in.program("npm", ":\n")
	// node renames. Before it moves the folder in place, the other installation finishes.
	in.program("node", `
[ "$1" = -e ] || exit 0
if [ "$3" = "$ROOT/.tools/kinesalite" ]; then
	cp "$ROOT/scripts/kinesalite/package-lock.json" "$3"
	touch "$3/of-the-other"
fi
[ ! -e "$4" ] && mv "$3" "$4"
`)
	if output, err := in.run("install-kinesalite"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if _, err := os.Stat(filepath.Join(in.root, ".tools/kinesalite/of-the-other")); err != nil {
		t.Errorf("what the other installation has put is gone: %v", err)
	}
	if left := in.left(); len(left) > 0 {
		t.Errorf("left are %q, want nothing", left)
	}
}

// An older version is replaced.
func TestUpgradeOfKinesalite(t *testing.T) {
	in := newInstallation(t)
	in.write(".tools/kinesalite/package-lock.json", "an older one")
	in.program("npm", ":\n")
	in.program("node", `
[ "$1" = -e ] || exit 0
[ ! -e "$4" ] && mv "$3" "$4"
`)
	output, err := in.run("install-kinesalite")
	if err != nil || !strings.Contains(output, "installed .tools/kinesalite") {
		t.Errorf("%v: %s", err, output)
	}
	want, err := os.ReadFile(filepath.Join(in.root, "scripts/kinesalite/package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(in.root, ".tools/kinesalite/package-lock.json")); !bytes.Equal(want, got) {
		t.Errorf("the lock file in place is %.50q with error %v, want the pinned one", got, err)
	}
}
