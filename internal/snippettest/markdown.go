package snippettest

import (
	"strings"
)

// block is a fenced code block.
type block struct {
	file     string
	line     int // of the first line of the code
	language string
	code     string

	// From the comment before the block, if there is one that begins with "<!-- go".
	hidden     string
	hiddenLine int // of the first line of hidden
	continued  bool
}

// markdownBlocks returns the fenced code blocks of a Markdown file.
func markdownBlocks(file, text string) []block {
	const (
		fence   = "```"
		comment = "<!-- go"
	)
	var (
		blocks []block
		next   block // what is known of the block to come
		lines  = strings.SplitAfter(text, "\n")
	)
	for i := 0; i < len(lines); i++ {
		trimmed := strings.TrimSpace(lines[i])
		switch {
		case trimmed == comment || strings.HasPrefix(trimmed, comment+" "):
			head, closed := strings.CutSuffix(strings.TrimPrefix(trimmed, comment), "-->")
			next = block{continued: strings.TrimSpace(head) == "continued", hiddenLine: i + 2}
			if !closed {
				next.hidden, i = until(lines, i+1, "-->")
			}
		case strings.HasPrefix(trimmed, fence):
			next.file, next.line = file, i+2
			next.language, _, _ = strings.Cut(strings.TrimPrefix(trimmed, fence), " ")
			indent := lines[i][:strings.Index(lines[i], fence)] // in a list
			next.code, i = until(lines, i+1, fence)
			if indent != "" {
				next.code = strings.ReplaceAll("\n"+next.code, "\n"+indent, "\n")[1:]
			}
			blocks = append(blocks, next)
			next = block{}
		case trimmed != "":
			next = block{} // a comment belongs to the block right after it
		}
	}
	return blocks
}

// until returns the lines from start up to the one that is end, and that one's index.
func until(lines []string, start int, end string) (string, int) {
	for i := start; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == end {
			return strings.Join(lines[start:i], ""), i
		}
	}
	return strings.Join(lines[start:], ""), len(lines)
}
