// Package jmespath makes keys and fingerprints of JSON payloads by JMESPath expressions (https://jmespath.org, and of
// https://jmespath.site the grammar and the functions that go beyond it).
//
//	h, err := sqs.NewHandler(placeOrder, func(o *sqs.Options) {
//		o.Idempotency = guard
//		o.PayloadKey = jmespath.MustCompile("[tenant, order_id]").Key
//		o.PayloadFingerprint = jmespath.MustCompile("[amount, currency]").Fingerprint
//	})
//
// # Keys
//
// Two different values that one expression selects never make one key:
//
//   - A string is the key as it is. One that begins with "json:" is not: it is written as other values are.
//   - A multi-select list that the expression ends with, such as [tenant, order_id], makes the key that
//     idempotency.JoinKey makes of its parts, so that a function in Go can make the same.
//   - Any other value is "json:" and its canonical JSON: the number 1 is the key json:1, and the string "1" the key 1.
//     To have 1 for both, use to_string(order_id).
//
// There is no key, which is an idempotency.ErrKeyMissing, where an expression selects null, "", [] or {}, or where any part
// of a multi-select list or hash is one of these. So it is for the multi-selects that make the result, also within one
// another, in projections and on both sides of ||; what a function gets or an index picks from may have empty parts.
//
// # Numbers
//
// A number is a float64 for comparisons, arithmetic and functions if its float64 is told by the same decimal digits, as it is
// for all numbers of up to 15 digits and all integers up to 2^53. Any other number, such as 9007199254740993, keeps its
// digits: 9007199254740993 and 9007199254740992 are two keys. It is equal to a number of the same value and to nothing else,
// comparisons by size and arithmetic give null, functions that take numbers fail, and to_string returns its digits. Arithmetic
// on float64s rounds, as everywhere. An expression cannot have a number of 2^53 or more, which the parser would round: compare
// with to_string(id) == '9007199254740993'.
//
// # Functions
//
// Besides those of JMESPath there are those of Powertools for AWS Lambda for payloads within payloads
// (https://docs.aws.amazon.com/powertools/python/latest/utilities/jmespath_functions/):
//
//   - powertools_json(text) is the value of JSON, under the same rules as the payload.
//   - powertools_base64(text) is the text that is encoded in base64, which has to be UTF-8.
//   - powertools_base64_gzip(text) is the text that is compressed with gzip and then encoded in base64, up to
//     Options.MaxInflated bytes of it.
//
// Each makes null of null. What depends on an order that an object does not have is in the order of the members' names: *, keys,
// values and items. The results of join, replace, pad_left and pad_right are limited to 16 MiB.
//
//snippet:go import "github.com/oncekit/oncekit/idempotency"
//snippet:go import "github.com/oncekit/oncekit/sources/sqs"
//snippet:go var guard *idempotency.Guard
//snippet:go type Order struct{}
//snippet:go func placeOrder(context.Context, *sqs.Message[Order]) error { return nil }
package jmespath
