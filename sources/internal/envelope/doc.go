// Package envelope takes apart the events of event source mappings, {"Records":[...]}, the arrays of EventBridge Pipes and
// single values, without decoding more of them than is asked for. It also tells what an event is by its shape.
//
// One pass over the payload finds the records and their members and proves that the whole is JSON. What is then read out
// of a member, if it is read at all, is found by Member and String, which may rely on that.
package envelope
