package protocol

import (
	"fmt"
	"strings"

	"github.com/oncekit/oncekit/docs/model/internal/explore"
)

// Explore visits all states, and ends early once all of the invariants in until are broken.
func (c *Config) Explore(until Invariant, maxStates int) explore.Result[State, Step] {
	return explore.Run[State, Step](c, explore.Options{Until: uint64(until), MaxStates: maxStates})
}

// Render writes a trace for people: a line a step, with the row after it where the step has changed it.
func (c *Config) Render(trace explore.Trace[State, Step]) string {
	var b strings.Builder
	before := &trace.Initial
	for i, step := range trace.Steps {
		after := &trace.After[i]
		line := fmt.Sprintf("%3d  t=%d  %s", i+1, before.Now, c.describe(before, step, after))
		for r := range after.Records {
			if was, is := &before.Records[r], &after.Records[r]; was.Row != is.Row || was.Business != is.Business {
				line = fmt.Sprintf("%-86s  %s", line, c.describeRecord(int8(r), is))
			}
		}
		b.WriteString(line)
		b.WriteByte('\n')
		before = after
	}
	return b.String()
}

func (c *Config) describeRecord(record int8, r *record) string {
	var s string
	switch r.Row.Status {
	case absent:
		s = "no row"
	case inprogress:
		s = fmt.Sprintf("INPROGRESS, owner %s, lease %s, expiry %d", c.owner(r.Row.Owner), lease(r.Row.Lease), r.Row.Expiry)
	case completed:
		s = fmt.Sprintf("COMPLETED, owner %s, expiry %d", c.owner(r.Row.Owner), r.Row.Expiry)
	}
	if c.Transaction {
		s += fmt.Sprintf("; changes of the business row: %d", r.Business)
	}
	if c.Lane {
		return c.recordName(record) + ": " + s
	}
	return s
}

func lease(end int8) string {
	if end == 0 {
		return "none"
	}
	return fmt.Sprint(end)
}

func (c *Config) owner(token int8) string {
	switch {
	case token == 0:
		return "none"
	case c.Off.has(FreshOwner):
		return processName(token - 1)
	case (token-1)%4 == 0:
		return fmt.Sprintf("#%d", (token-1)/4+1)
	default:
		return fmt.Sprintf("#%d, renewed %d times", (token-1)/4+1, (token-1)%4)
	}
}

func processName(p int8) string { return string(rune('A' + p)) }

func (c *Config) recordName(r int8) string {
	if !c.Lane {
		return "the record"
	}
	return [...]string{"record 1", "record 2", "record 3"}[r]
}

// describe says what a step is.
func (c *Config) describe(before *State, step Step, after *State) string {
	process := processName(step.Process)
	who := fmt.Sprintf("%s#%d", process, step.Attempt+1)
	request := operationNames[step.Request.Op]
	switch step.Kind {
	case ticks:
		return fmt.Sprintf("time passes: it is %d now, %s", after.Now, c.clocks(after))
	case delivers, startsNext:
		return c.describeStart(before, step, after)
	case arrives, arrivesByToken, losesReply, isThrottled:
		if step.Kind == isThrottled {
			return fmt.Sprintf("%s of %s is refused, throttled", request, who)
		}
		what := fmt.Sprintf("%s of %s arrives: %s", request, who, c.describeAnswer(step))
		switch {
		case step.Kind == losesReply:
			what += "; the reply is lost"
		case step.Kind == arrivesByToken:
			what += ", by its client token"
		case after.Attempts[step.Attempt].Call == noCall || after.Attempts[step.Attempt].Op != step.Request.Op:
			what += c.consequence(before, step, after)
		}
		return what
	case losesRequest:
		return fmt.Sprintf("%s of %s is lost on its way", request, who)
	case losesGroupRequest:
		return fmt.Sprintf("the call of %s for a group is lost on its way", process)
	case losesGroupReply:
		return fmt.Sprintf("the reply to the call of %s for a group is lost", process)
	case isDelayed:
		return fmt.Sprintf("%s of %s is held up on its way; %s waits no longer", request, who, who)
	case arrivesLate:
		who = fmt.Sprintf("%s#%d", processName(before.Attempts[step.Attempt].Process), step.Attempt+1)
		return fmt.Sprintf("late, %s of %s, sent at %d by its clock, arrives: %s", request, who, step.Request.Now, c.describeAnswer(step))
	case reads:
		return fmt.Sprintf("%s gets the reply to %s: %s", who, request, c.describeAnswer(step)) + c.consequence(before, step, after)
	case resends:
		return fmt.Sprintf("%s sends %s again", who, request)
	case givesUp:
		return fmt.Sprintf("%s gives up on %s", who, request) + c.consequence(before, step, after)
	case completes:
		if after.Attempts[step.Attempt].Call == noCall {
			return fmt.Sprintf("%s's context has ended: the completion is not sent, the record is told as done", who)
		}
		return who + " sends its completion"
	}
	if text, ok := processSteps[step.Kind]; ok {
		return fmt.Sprintf(text, process)
	}
	if text, ok := attemptSteps[step.Kind]; ok {
		return fmt.Sprintf(text, who)
	}
	if text, ok := tableSteps[step.Kind]; ok {
		return text
	}
	return fmt.Sprintf("step %d, which has no words", step.Kind)
}

var operationNames = [...]string{
	noOp: "nothing", opClaim: "the claim", opLook: "the claim's look", opPut: "the claim's write",
	opComplete: "the completion", opRelease: "the release", opRenew: "the renewal",
}

var processSteps = map[kind]string{
	readsGroup:     "%s gets the replies to both completions",
	completesGroup: "%s sends both completions in one call",
	answersBatch:   "%s answers the batch",
	processCrashes: "process %s crashes",
	processFreezes: "process %s is frozen",
	thaws:          "process %s thaws",
}

var attemptSteps = map[kind]string{
	hasEffect:         "%s's handler has its effect and returns nil",
	returnsError:      "%s's handler returns an error; its release is sent",
	straggles:         "%s's handler no longer heeds its context",
	writesBusiness:    "%s's handler changes the business row",
	renews:            "%s sends a renewal",
	releasesAbandoned: "%s's handler is abandoned, and its claim is released by others",
}

var tableSteps = map[kind]string{
	deletesExpired: "the table deletes the row, which has expired",
	deletesByHand:  "someone deletes the row by hand",
	evicts:         "the store drops the row to make room",
	peerClaims:     "the other tool claims the key",
	peerCompletes:  "the other tool completes the key",
	peerDeletes:    "the other tool's work fails, and it deletes the row",
}

func (c *Config) clocks(s *State) string {
	var parts []string
	for p := range c.Offsets {
		parts = append(parts, fmt.Sprintf("%d on %s", c.clock(s, int8(p)), processName(int8(p))))
	}
	return strings.Join(parts, ", ")
}

func (c *Config) describeStart(before *State, step Step, after *State) string {
	var parts []string
	for i := range after.Attempts {
		if a := &after.Attempts[i]; a.Phase != unused && before.Attempts[i].Phase == unused {
			parts = append(parts, fmt.Sprintf("%s#%d claims %s until %d", processName(step.Process), i+1, c.recordName(a.Record), a.Lease))
		}
	}
	what := "delivery: "
	if step.Kind == startsNext {
		what = "the lane goes on: "
	}
	return what + strings.Join(parts, ", ")
}

func (c *Config) describeAnswer(step Step) string {
	switch step.Answer {
	case answerOK:
		return [...]string{
			opClaim: "claimed", opLook: "free", opPut: "written", opComplete: "stored", opRelease: "released", opRenew: "renewed",
		}[step.Request.Op]
	case answerFree:
		return "the key is free"
	case answerHeld:
		return "held by another"
	case answerDone:
		return "done"
	case answerLost:
		return "the claim is lost"
	case answerAlready:
		return "completed already"
	case answerError:
		return "refused, throttled"
	}
	return "nothing"
}

// consequence says what the attempt does after an answer.
func (c *Config) consequence(before *State, step Step, after *State) string {
	was, is := &before.Attempts[step.Attempt], &after.Attempts[step.Attempt]
	switch {
	case is.Started && !was.Started:
		return "; its handler starts"
	case is.Phase == ended && is.Outcome == succeeded, is.Phase == ended && is.Outcome == replayed:
		return "; told as done"
	case is.Phase == ended && is.Outcome == unrecorded:
		return "; told as done, unrecorded"
	case is.Phase == ended:
		return "; told as failed"
	case is.Phase == releasing && was.Phase != releasing:
		return "; it sends a release"
	case is.Phase == writing && was.Phase != writing:
		return "; it sends the write"
	}
	return ""
}
