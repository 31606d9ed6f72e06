// Package snippettest compiles the code in the documentation: every block marked as go in the README, the changelog and
// docs/, and the code in doc comments that ask for it. It also looks up what the shell commands there name.
//
// A reader sees short code: no package clause, no imports, several statements and perhaps a function after them. So a
// block is completed before it is compiled:
//
//   - A block with a package clause is a file and must be complete, down to the last import.
//   - Any other block is declarations, or statements, or statements followed by functions. The statements become the
//     body of a function that returns an error if they do; variables and imports that are not used are no error.
//   - Packages of this module, of the standard library and those in wellKnown need not be imported.
//   - What else a block needs is given in a comment before it, which Markdown does not show: imports and declarations.
//
// Such a comment begins with "<!-- go":
//
//	<!-- go
//	import awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
//
//	var client *dynamodb.Client
//	-->
//
// "<!-- go continued" makes the block go on where the block before it ended: its statements see the variables of those
// before, and its declarations are in the same file.
//
// A doc comment asks for its code to be compiled by a line "//snippet:go" at its end, where gofmt puts it. What follows
// on the line is code that the reader does not see, as above.
package snippettest
