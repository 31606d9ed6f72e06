package snippettest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkCommands looks up what the shell commands in the blocks name: make's targets, and files and packages of the
// module at root. It returns what does not exist, each with its file and line.
func checkCommands(root fs.FS, blocks []block) ([]string, error) {
	makefile, err := fs.ReadFile(root, "Makefile")
	if err != nil {
		return nil, err
	}
	targets := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[match[1]] = true
	}
	var complaints []string
	for _, b := range blocks {
		if !slices.Contains([]string{"sh", "bash", "shell", "console"}, b.language) {
			continue
		}
		line := b.line
		for text := range strings.Lines(b.code) {
			for _, command := range regexp.MustCompile(`&&|\|\||[;|]`).Split(text, -1) {
				for _, complaint := range checkCommand(root, targets, strings.Fields(command)) {
					complaints = append(complaints, fmt.Sprintf("%s:%d: %s", b.file, line, complaint))
				}
			}
			line++
		}
	}
	return complaints, nil
}

var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// checkCommand returns what a command names that does not exist.
func checkCommand(root fs.FS, targets map[string]bool, words []string) []string {
	if comment := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "#") }); comment >= 0 {
		words = words[:comment]
	}
	for len(words) > 0 && (words[0] == "$" || assignment.MatchString(words[0])) {
		words = words[1:]
	}
	if len(words) < 2 {
		return nil
	}
	var complaints []string
	switch command := words[0]; command {
	case "make":
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && !targets[word] {
				complaints = append(complaints, fmt.Sprintf("the Makefile has no target %s", word))
			}
		}
	case "go":
		runs := words[1] == "run"
		for i, word := range words[2:] {
			before := words[i+1]
			if before == "-o" {
				continue
			}
			name, ours := inModule(word)
			if !ours {
				continue
			}
			if complaint := lookUp(root, name, word, runs); complaint != "" {
				complaints = append(complaints, complaint)
			}
			runs = false // what follows the package is the program's own
		}
	}
	return complaints
}

// inModule returns the path in the module that a word names as "./path" or by its import path, and whether it does.
func inModule(word string) (string, bool) {
	word, _, _ = strings.Cut(word, "@") // a version
	if name, ok := strings.CutPrefix(word, "./"); ok {
		return path.Clean(name), true
	}
	if name, ok := strings.CutPrefix(word, module); ok {
		return path.Clean(strings.TrimPrefix(name, "/")), true
	}
	return "", false
}

// lookUp returns what is wrong with a name in the module, or "". A program is a folder with a main package.
func lookUp(root fs.FS, name, word string, program bool) string {
	folder, pattern := strings.CutSuffix(name, "...")
	folder = path.Clean(folder)
	if _, err := fs.Stat(root, folder); err != nil {
		return fmt.Sprintf("%s does not exist", word)
	}
	if !program || pattern {
		return ""
	}
	files, _ := fs.Glob(root, path.Join(folder, "*.go"))
	for _, file := range files {
		source, err := fs.ReadFile(root, file)
		if err == nil && regexp.MustCompile(`(?m)^package main\b`).Match(source) {
			return ""
		}
	}
	return fmt.Sprintf("%s is not a program", word)
}
