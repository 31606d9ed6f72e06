// Package eventkey names the events of EventBridge, which reach a function by a rule or in the messages of a queue. Both ways
// have to give an event the same name, so that one guard recognises it.
package eventkey
