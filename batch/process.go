package batch

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Process runs handler for each of the records and returns what became of them.
//
// At most Options.Concurrency handlers run at once. Records of one lane run one at a time and in input order; if one
// fails, the rest of its lane is Skipped. Of the records with the same Key, or with the same ID where they have no key,
// one runs, and the others share its outcome. A panic in a handler is its record's failure. A failure cancels nothing:
// the handlers' context ends only when the batch's time is up, or with ctx.
//
// Process returns when every record has an outcome and all goroutines that it started are done, except for those whose
// handlers ignore their context: these records are Abandoned when the answer has to go. See Options.Reserve.
//
// The error is about the call alone, and then nothing has run: a nil handler, or options that are out of their limits.
// Records that fail are in the Report.
func Process(ctx context.Context, records []Record, handler Handler, optFns ...func(*Options)) (*Report, error) {
	if handler == nil {
		return nil, errors.New("batch: handler is nil, want a function")
	}
	var options Options
	for _, fn := range optFns {
		if fn != nil {
			fn(&options)
		}
	}
	if err := options.Validate(); err != nil {
		return nil, err
	}
	// A copy, since an abandoned handler keeps its record for as long as it runs.
	records = slices.Clone(records)
	return RunStages(ctx, records, &handlerStages{records, handler}, &options), nil
}

// RunStages is Process for sources that do more with a record than to call a handler. The options were validated, and
// are not changed while any batch runs with them. The engine owns records from now on, and sets their Key.
func RunStages(ctx context.Context, records []Record, stages Stages, options *Options) *Report {
	begin := time.Now()
	logger := options.logger()
	eachHook(options.Hooks, logger, func(h OnBatchStarted) { h.OnBatchStarted(ctx, records) })

	e := newEngine(ctx, begin, records, stages, options)
	e.start()
	e.supervise()
	e.join()

	report := e.report()
	logSafely(func() { logReport(ctx, logger, report) })
	eachHook(options.Hooks, logger, func(h OnBatchFinished) { h.OnBatchFinished(ctx, report) })
	if options.PanicOnAbandoned && report.Count(Abandoned) > 0 {
		panic(report.Err(ErrorOnAnyFailure))
	}
	return report
}
