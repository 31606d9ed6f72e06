package snippettest

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"strings"
)

// directive marks a doc comment whose code is compiled.
const directive = "//snippet:go"

// docBlocks returns the code in the doc comments of a Go file that ask for it to be compiled.
func docBlocks(file string, source []byte) ([]block, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var blocks []block
	for _, group := range parsed.Comments {
		hidden, asked := hiddenCode(group)
		if !asked {
			continue
		}
		for _, part := range new(comment.Parser).Parse(group.Text()).Content {
			code, ok := part.(*comment.Code)
			if !ok {
				continue
			}
			first, _, _ := strings.Cut(code.Text, "\n")
			line := fset.Position(group.Pos()).Line
			for _, c := range group.List {
				if strings.TrimSpace(strings.TrimPrefix(c.Text, "//")) == strings.TrimSpace(first) {
					line = fset.Position(c.Pos()).Line
					break
				}
			}
			blocks = append(blocks, block{
				file: file, line: line, language: "go", code: code.Text,
				hidden: hidden, hiddenLine: fset.Position(group.End()).Line,
			})
		}
	}
	return blocks, nil
}

// hiddenCode returns the code that follows the directives in a comment, and whether there are any.
func hiddenCode(group *ast.CommentGroup) (code string, asked bool) {
	for _, c := range group.List {
		rest, ok := strings.CutPrefix(c.Text, directive)
		if ok && (rest == "" || rest[0] == ' ') {
			asked = true
			code += strings.TrimSpace(rest) + "\n"
		}
	}
	return code, asked
}
