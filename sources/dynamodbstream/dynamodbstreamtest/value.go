package dynamodbstreamtest

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// checkAttributes returns an error for attributes, those of an item or of a map, that have a name or a value that
// DynamoDB would refuse.
func checkAttributes(attributes map[string]events.DynamoDBAttributeValue) error {
	for name, value := range attributes {
		switch err := checkValue(value); {
		case name == "":
			return errors.New("an attribute has no name")
		case !utf8.ValidString(name):
			return fmt.Errorf("attribute name is %q, but must be UTF-8", name)
		case err != nil:
			return fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return nil
}

// checkValue returns an error for a value that DynamoDB would refuse: a number that is none, a set that is empty or has an
// element twice, text that is not UTF-8
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html). So it does for
// one whose encoding would panic or be another value: the zero value of its type claims to be binary and holds nothing.
func checkValue(v events.DynamoDBAttributeValue) error {
	if v.DataType() != events.DataTypeNull && v.IsNull() {
		return errors.New("it has no value, but must be made by a function of package events such as NewStringAttribute")
	}
	switch v.DataType() {
	case events.DataTypeString:
		_, err := checkText(v.String())
		return err
	case events.DataTypeNumber:
		_, err := canonicalNumber(v.Number())
		return err
	case events.DataTypeStringSet:
		return checkSet(v.StringSet(), checkText)
	case events.DataTypeNumberSet:
		return checkSet(v.NumberSet(), canonicalNumber)
	case events.DataTypeBinarySet:
		return checkSet(v.BinarySet(), func(b []byte) (string, error) { return string(b), nil })
	case events.DataTypeList:
		for i, element := range v.List() {
			if err := checkValue(element); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
	case events.DataTypeMap:
		return checkAttributes(v.Map())
	}
	return nil
}

func checkText(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("text is %.100q, but must be UTF-8", text)
	}
	return text, nil
}

// checkSet checks a set of elements. canonical returns what is the same for equal elements, or what is wrong with one.
func checkSet[E any](elements []E, canonical func(E) (string, error)) error {
	if len(elements) == 0 {
		return errors.New("set has no elements, but must have one")
	}
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		text, err := canonical(element)
		switch {
		case err != nil:
			return fmt.Errorf("element %d: %w", i, err)
		case seen[text]:
			return fmt.Errorf("element %d of the set is there before, but each must be there once", i)
		}
		seen[text] = true
	}
	return nil
}
