// Package protocol is a model of what oncekit does with a key: claim, run, complete, release and renew, between workers
// that crash, freeze and straggle, over a network that loses, delays and repeats requests, with clocks that differ.
// Package explore visits all its states.
//
// The README in docs/model says what is modelled, what is not, and what was found.
package protocol
