package jmespath

import (
	"errors"
	"fmt"

	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/oncekit/oncekit/idempotency"
)

// Expression is a compiled expression. It is safe for concurrent use.
type Expression struct {
	text    string
	tree    parsing.ASTNode
	library *library
	hash    idempotency.Hash
}

// Compile compiles an expression. The error says what is wrong with it, or which option is out of its limits: a function that
// does not exist, a number of arguments that it does not take, and a number that cannot be kept exactly are found here.
func Compile(expression string, optFns ...func(*Options)) (*Expression, error) {
	var options Options
	for _, f := range optFns {
		if f != nil {
			f(&options)
		}
	}
	e := &Expression{text: expression, hash: options.Hash}
	err := options.validate()
	if err == nil {
		e.library = newLibrary(options.MaxInflated)
		e.tree, err = parse(expression)
	}
	if err == nil {
		e.tree, err = adapt(e.tree, e.library)
	}
	if err != nil {
		return nil, e.failed(err)
	}
	return e, nil
}

// MustCompile is Compile, and panics where that returns an error: for expressions that are constants of the program.
func MustCompile(expression string, optFns ...func(*Options)) *Expression {
	e, err := Compile(expression, optFns...)
	if err != nil {
		panic(err)
	}
	return e
}

// parse returns the tree of an expression.
func parse(expression string) (tree parsing.ASTNode, err error) {
	defer recovered(&err)
	return parsing.NewParser().Parse(expression)
}

// recovered makes an error of a panic: the parser and the evaluator are not written for everybody's input.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("it panicked: %v", value)
	}
}

// failed is an error as the caller sees it.
func (e *Expression) failed(err error) error {
	return fmt.Errorf("jmespath: expression %.200q: %w", e.text, err)
}

// String returns the expression's text.
func (e *Expression) String() string { return e.text }

// Key returns the key of what the expression selects from the payload, which is JSON; the package's documentation says what
// that is. An expression that selects nothing has no key: the error is an idempotency.ErrKeyMissing. An error shows nothing of
// the payload but single characters.
func (e *Expression) Key(payload []byte) (string, error) {
	value, err := e.search(payload)
	switch {
	case err != nil:
	case hasGap(&e.tree, value):
		err = fmt.Errorf("%w: it selects nothing, or a part that is null or empty", idempotency.ErrKeyMissing)
	default:
		var key string
		if key, err = e.keyOf(value); err == nil {
			return key, nil
		}
	}
	return "", e.failed(err)
}

// keyOf returns the key of a value without gaps.
func (e *Expression) keyOf(value any) (string, error) {
	list, _ := value.([]any)
	if !endsWithList(&e.tree) {
		return keyPart(value)
	}
	parts := make([]string, len(list))
	for i, element := range list {
		var err error
		if parts[i], err = keyPart(element); err != nil {
			return "", err
		}
	}
	return idempotency.JoinKey(parts...), nil
}

// Fingerprint returns the hash of the canonical JSON of what the expression selects from the payload, which is JSON: see
// idempotency.Hash. Nothing selected is null, and has a fingerprint like other values, so that a payload without what another
// one has is another one. An error shows nothing of the payload but single characters.
func (e *Expression) Fingerprint(payload []byte) (string, error) {
	value, err := e.search(payload)
	var text []byte
	if err == nil {
		text, err = appendValue(nil, value)
	}
	var fingerprint string
	if err == nil {
		fingerprint, err = e.hash.PayloadHash(text)
	}
	if err != nil {
		return "", e.failed(err)
	}
	return fingerprint, nil
}

// search returns what the expression selects.
func (e *Expression) search(payload []byte) (value any, err error) {
	defer recovered(&err)
	root, err := decode(payload)
	if err != nil {
		return nil, err
	}
	calls := &caller{library: e.library}
	value, err = interpreter.NewInterpreter(root, calls, nil).Execute(e.tree, root)
	return value, errors.Join(err, calls.lost(err))
}
