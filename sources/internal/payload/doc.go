// Package payload decodes what a record carries into the type that a handler asks for, and finds the key that a payload
// names itself by.
package payload
