package report

import (
	"fmt"
	"io"
	"os"
)

// Progress shows how far a run has got: in one line that changes on a terminal, in the lines that are to stay elsewhere.
type Progress struct {
	out      io.Writer
	terminal bool
	shown    bool
}

// NewProgress returns a Progress that shows on out.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out, terminal: isTerminal(out)} }

// Show shows a line. It stays where it is no terminal that shows it only if stay is set.
func (p *Progress) Show(line string, stay bool) {
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r%-76s", line)
		p.shown = true
	case stay:
		fmt.Fprintln(p.out, line)
	}
}

// End ends the line that changes.
func (p *Progress) End() {
	if p.shown {
		fmt.Fprintln(p.out)
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
