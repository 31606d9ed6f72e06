package envelope

import "github.com/go-json-experiment/json/jsontext"

// AppendAnswer appends the partial batch response. Its spelling is all that Lambda goes by: with any other name for the
// outer member, or with null, the whole batch counts as a success and does not come back
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html).
func AppendAnswer(dst []byte, failed []string) []byte {
	dst = append(dst, '{')
	dst = AppendFailures(dst, failed)
	return append(dst, '}')
}

// AppendFailures appends the response's one member, for a response that has others too.
func AppendFailures(dst []byte, failed []string) []byte {
	dst = append(dst, `"batchItemFailures":[`...)
	for i, id := range failed {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"itemIdentifier":`...)
		dst, _ = jsontext.AppendQuote(dst, id) // an identifier has no broken UTF-8: it was decoded
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
