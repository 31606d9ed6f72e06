package jmespath

import (
	"errors"
	"fmt"
	"math"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"
)

// adapt returns the tree with what does not depend on the order of a map in place of what does, or an error for what
// cannot be evaluated.
func adapt(node parsing.ASTNode, l *library) (parsing.ASTNode, error) {
	var err error
	switch node.NodeType {
	case parsing.ASTFunctionExpression:
		err = l.check(node.Value.(string), len(node.Children))
	case parsing.ASTLiteral:
		if !isExact(node.Value) {
			err = errors.New("it has a number of 2^53 or more, which would be rounded, want a string that to_string is compared with")
		}
	}
	if err != nil {
		return node, err
	}
	children := make([]parsing.ASTNode, len(node.Children))
	for i, child := range node.Children {
		if children[i], err = adapt(child, l); err != nil {
			return node, err
		}
	}
	node.Children = children
	if node.NodeType == parsing.ASTValueProjection {
		// The evaluator goes through the members in the order of Go's maps, another one each time.
		node.NodeType = parsing.ASTProjection
		call := parsing.ASTNode{NodeType: parsing.ASTFunctionExpression, Value: membersOf, Children: children[:1:1]}
		node.Children = []parsing.ASTNode{call, children[1]}
	}
	return node, nil
}

// isExact reports whether the parser, which reads numbers as float64s, cannot have rounded an integer.
func isExact(literal any) bool {
	switch literal := literal.(type) {
	case float64:
		return math.Abs(literal) < 1<<53
	case []any:
		for _, element := range literal {
			if !isExact(element) {
				return false
			}
		}
	case map[string]any:
		for _, member := range literal {
			if !isExact(member) {
				return false
			}
		}
	}
	return true
}

// result returns the part of the node that makes its value, if that is one part. The left side of && makes only values
// that are false, so that its right side makes all that matter.
func result(node *parsing.ASTNode) (*parsing.ASTNode, bool) {
	switch node.NodeType {
	case parsing.ASTPipe, parsing.ASTSubexpression, parsing.ASTIndexExpression, parsing.ASTAndExpression, parsing.ASTLetExpression:
		return &node.Children[len(node.Children)-1], true
	}
	return nil, false
}

// endsWithList reports whether all that the node makes are the lists of a multi-select, or null.
func endsWithList(node *parsing.ASTNode) bool {
	if node.NodeType == parsing.ASTAndExpression {
		return false // false would be like a list of false only
	}
	if last, ok := result(node); ok {
		return endsWithList(last)
	}
	return node.NodeType == parsing.ASTMultiSelectList
}

// hasGap reports whether a value that the node made is nothing, or has a part in a multi-select that is nothing.
func hasGap(node *parsing.ASTNode, value any) bool {
	if isNothing(value) {
		return true
	}
	if last, ok := result(node); ok {
		return hasGap(last, value)
	}
	list, _ := value.([]any)
	object, _ := value.(map[string]any)
	switch node.NodeType {
	case parsing.ASTOrExpression: // nobody knows whose value it is
		return hasGap(&node.Children[0], value) || hasGap(&node.Children[1], value)
	case parsing.ASTMultiSelectList:
		for i, element := range list {
			if i < len(node.Children) && hasGap(&node.Children[i], element) {
				return true
			}
		}
	case parsing.ASTMultiSelectHash:
		for i := range node.Children {
			child := &node.Children[i]
			member, ok := object[fmt.Sprint(child.Value)]
			if ok && hasGap(&child.Children[0], member) {
				return true
			}
		}
	case parsing.ASTProjection, parsing.ASTFilterProjection:
		for _, element := range list {
			// How many there are is for the payload to say, so that an empty one is no gap.
			if !isNothing(element) && hasGap(&node.Children[1], element) {
				return true
			}
		}
	}
	return false
}

// isNothing reports whether a value cannot tell one piece of work from another.
func isNothing(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}
