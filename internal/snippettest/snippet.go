package snippettest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// snippet is one or several blocks that are compiled as one file.
type snippet struct {
	file     string // where it begins
	line     int
	complete bool // a file as it stands

	imports      strings.Builder
	declarations strings.Builder
	statements   strings.Builder
}

// newSnippets makes snippets of the blocks that are marked as go.
func newSnippets(blocks []block) ([]*snippet, error) {
	var snippets []*snippet
	for _, b := range blocks {
		if b.language != "go" {
			continue
		}
		if !b.continued {
			snippets = append(snippets, &snippet{file: b.file, line: b.line})
		} else if len(snippets) == 0 || snippets[len(snippets)-1].file != b.file || snippets[len(snippets)-1].complete {
			return nil, fmt.Errorf("%s:%d: there is nothing before the block that it could continue", b.file, b.line)
		}
		if err := snippets[len(snippets)-1].add(b); err != nil {
			return nil, err
		}
	}
	return snippets, nil
}

// functions finds where statements end and functions begin: at a line that declares one.
var functions = regexp.MustCompile(`(?m)^func [A-Za-z(]`)

// add puts the parts of a block where they belong in the file.
func (s *snippet) add(b block) error {
	if _, err := parser.ParseFile(token.NewFileSet(), "", b.code, parser.PackageClauseOnly); err == nil {
		s.complete = true
		s.declarations.WriteString(b.code)
		return nil
	}
	if err := s.split(b.hidden, b.file, b.hiddenLine, false); err != nil {
		return err
	}
	return s.split(b.code, b.file, b.line, true)
}

// split puts imports, declarations and statements apart. Hidden code has no statements.
func (s *snippet) split(code, file string, line int, statements bool) error {
	const clause = "package snippet;"
	fset := token.NewFileSet()
	head, err := parser.ParseFile(fset, "", clause+code, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", file, line, err)
	}
	if len(head.Decls) > 0 {
		end := fset.Position(head.Decls[len(head.Decls)-1].End()).Offset - len(clause)
		fmt.Fprintf(&s.imports, "%s%s\n", lineDirective(file, line), code[:end])
		line += strings.Count(code[:end], "\n")
		code = code[end:]
	}

	before, after := "", code
	if statements {
		if _, err := parser.ParseFile(token.NewFileSet(), "", clause+code, 0); err != nil {
			before, after = code, ""
			if at := functions.FindStringIndex(code); at != nil {
				before, after = code[:at[0]], code[at[0]:]
			}
		}
	}
	if strings.TrimSpace(before) != "" {
		fmt.Fprintf(&s.statements, "%s%s\n", lineDirective(file, line), before)
	}
	if strings.TrimSpace(after) != "" {
		line += strings.Count(before, "\n")
		fmt.Fprintf(&s.declarations, "%s%s\n", lineDirective(file, line), after)
	}
	return nil
}

// lineDirective says to the parser where the next line comes from.
func lineDirective(file string, line int) string { return fmt.Sprintf("\n//line %s:%d\n", file, line) }

// parse returns the file that the snippet makes. It imports the packages of known, a path by name, that it uses.
func (s *snippet) parse(fset *token.FileSet, known map[string]string) (*ast.File, error) {
	if s.complete {
		return parser.ParseFile(fset, "", lineDirective(s.file, s.line)+s.declarations.String(), parser.SkipObjectResolution)
	}
	draft, err := parser.ParseFile(token.NewFileSet(), "", s.source("", ""), parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	result := ""
	if returnsValue(draft) {
		result = "error"
	}
	return parser.ParseFile(fset, "", s.source(missingImports(draft, known), result), parser.SkipObjectResolution)
}

// source returns the text of the file, with imports added and with the type that the statements return.
func (s *snippet) source(imports, result string) string {
	source := "package snippet\n" + imports + s.imports.String() + s.declarations.String()
	if s.statements.Len() == 0 {
		return source
	}
	source += "\nfunc _() " + result + " {" + s.statements.String()
	if result != "" {
		source += "\nreturn nil"
	}
	return source + "\n}\n"
}

// returnsValue reports whether a statement in the function that holds the statements returns something.
func returnsValue(file *ast.File) bool {
	found := false
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "_" {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
					found = true
				}
				_, inner := n.(*ast.FuncLit)
				return !inner
			})
		}
	}
	return found
}

// missingImports returns import declarations for the packages of known that the file uses and that it neither imports
// nor hides behind a declaration of its own. A local variable of the same name is no harm: it hides the package.
func missingImports(file *ast.File, known map[string]string) string {
	taken := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			taken[d.Name.Name] = d.Recv == nil
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ImportSpec:
					taken[importName(spec, known)] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						taken[name.Name] = true
					}
				case *ast.TypeSpec:
					taken[spec.Name.Name] = true
				}
			}
		}
	}
	var imports strings.Builder
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && known[x.Name] != "" && !taken[x.Name] {
				taken[x.Name] = true
				fmt.Fprintf(&imports, "import %s %q\n", x.Name, known[x.Name])
			}
		}
		return true
	})
	return imports.String()
}

// importName returns the name under which a file knows a package that it imports. A package that is not known is
// taken to have the name that its path ends in, which is so unless the path ends in a version.
func importName(spec *ast.ImportSpec, known map[string]string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	importPath, _ := strconv.Unquote(spec.Path.Value)
	for name, p := range known {
		if p == importPath {
			return name
		}
	}
	return path.Base(importPath)
}
