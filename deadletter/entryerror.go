package deadletter

import "fmt"

// EntryError is the error of a letter that SQS refused while it answered the request that the letter was in
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_BatchResultErrorEntry.html).
type EntryError struct {
	// Code is the error code of SQS, such as "InternalError".
	Code string
	// Message is its explanation. It may be empty.
	Message string
	// SenderFault is whether the letter is at fault, or the queue's settings, so that it will be refused again. If it is
	// false, SQS is, and a later attempt may succeed.
	SenderFault bool
}

// Error says what SQS said, and whose fault it is.
func (e *EntryError) Error() string {
	text, fault := "deadletter: SQS refused the letter: "+e.Code, "SQS"
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.SenderFault {
		fault = "the sender"
	}
	return fmt.Sprintf("%s (the fault of %s)", text, fault)
}
