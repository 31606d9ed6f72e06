// Package archtest holds the rules of the house, as tests: who may import whom, what stays small, and what never shows
// in the API. docs/architecture.md says why the rules are what they are.
package archtest
