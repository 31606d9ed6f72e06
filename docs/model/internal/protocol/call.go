package protocol

// call is what can become of the call that an attempt has under way.
func (n *successors) call(i int) {
	a := &n.s.Attempts[i]
	frozen := n.s.Processes[a.Process].Frozen
	switch {
	case a.Call == sent:
		n.underWay(i)
	case a.Call == answered && a.Group:
		n.groupAnswered(i, frozen)
	case a.Call == answered && !frozen:
		after := n.begin()
		n.read(after, i)
		n.end(n.step(reads, i))
	case a.Call == unanswered && !frozen:
		if a.Tries < n.Tries {
			after := n.begin()
			b := &after.Attempts[i]
			b.Call, b.Answer = sent, noAnswer
			b.Tries++
			n.end(n.step(resends, i))
		}
		after := n.begin()
		n.giveUp(after, i)
		n.end(n.step(givesUp, i))
	}
}

func (n *successors) step(k kind, i int) Step {
	a := &n.s.Attempts[i]
	s := Step{Kind: k, Process: a.Process, Attempt: int8(i), Record: a.Record, Answer: a.Answer}
	if a.Call != noCall {
		s.Request = n.request(n.s, i)
	}
	return s
}

// underWay is what can become of a request.
func (n *successors) underWay(i int) {
	q := n.request(n.s, i)
	arrive := func(k kind, apply func(*State) answer) {
		after := n.begin()
		step := n.step(k, i)
		step.Answer = apply(after)
		a := &after.Attempts[i]
		switch k {
		case losesReply:
			n.lose(after, i)
		default:
			a.Call, a.Answer = answered, step.Answer
			if n.Fused && !a.Group && !n.s.Processes[a.Process].Frozen {
				n.read(after, i)
			}
		}
		n.end(step)
	}
	store := func(s *State) answer { return n.apply(s, q) }
	a := &n.s.Attempts[i]
	arrive(arrives, store)
	if n.Transaction && q.Op == opComplete && a.Stored {
		// It is a copy, and DynamoDB remembers the client token for ten minutes.
		arrive(arrivesByToken, func(*State) answer { return answerOK })
	}
	if n.fault(throttles) {
		arrive(isThrottled, func(s *State) answer {
			s.Faults--
			if q.Op == opComplete || q.Op == opRenew {
				s.Attempts[i].Faulted = true
			}
			return answerError
		})
	}
	if a.Group {
		n.groupUnderWay(i)
		return
	}
	if n.fault(lostReplies) {
		arrive(losesReply, store)
	}
	if n.fault(lostRequests) {
		n.lose(n.begin(), i)
		n.end(n.step(losesRequest, i))
	}
	if n.fault(delays) {
		after := n.begin()
		n.lose(after, i)
		after.addLate(q)
		n.end(n.step(isDelayed, i))
	}
}

// lose leaves a call without an answer.
func (n *successors) lose(after *State, i int) {
	after.Faults--
	n.unanswer(after, i)
}

func (n *successors) unanswer(after *State, i int) {
	a := &after.Attempts[i]
	a.Call, a.Answer, a.Group, a.Undecided = unanswered, noAnswer, false, true
	if a.Op == opComplete || a.Op == opRenew {
		a.Faulted = true
	}
}

// partner returns the other attempt in a group's call, which is later in the order of attempts, or -1.
func (n *successors) partner(i int) int {
	for j := i + 1; j < len(n.s.Attempts); j++ {
		if b := &n.s.Attempts[j]; b.live() && b.Group && b.Process == n.s.Attempts[i].Process {
			return j
		}
	}
	return -1
}

// groupUnderWay is what can become of a call for two completions while neither has been made.
func (n *successors) groupUnderWay(i int) {
	j := n.partner(i)
	if j < 0 || n.s.Attempts[j].Call != sent {
		return
	}
	if n.fault(lostRequests) {
		after := n.begin()
		n.lose(after, i)
		n.unanswer(after, j)
		n.end(n.step(losesGroupRequest, i))
	}
}

// groupAnswered is what can become of the answer to a call for two completions. It comes when both are decided.
func (n *successors) groupAnswered(i int, frozen bool) {
	j := n.partner(i)
	if j < 0 || n.s.Attempts[j].Call != answered {
		return
	}
	if n.fault(lostReplies) {
		after := n.begin()
		n.lose(after, i)
		n.unanswer(after, j)
		n.end(n.step(losesGroupReply, i))
	}
	if frozen {
		return
	}
	after := n.begin()
	a, b := &after.Attempts[i], &after.Attempts[j]
	if n.Off.has(StatementsJudgedAlone) && (a.Answer == answerOK || b.Answer == answerOK) {
		a.Answer, b.Answer = answerOK, answerOK
	}
	n.read(after, i)
	n.read(after, j)
	n.end(n.step(readsGroup, i))
}
