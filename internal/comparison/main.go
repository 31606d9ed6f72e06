// The program comparison measures what it costs a Lambda function to handle batches of an SQS queue with keys in
// DynamoDB: by oncekit, by a loop that is written by hand, and by Powertools for AWS Lambda (TypeScript). `make bench`
// runs it, and docs/benchmarks.md says what its figures are and shows some.
//
// All clients are given the same events and talk to one DynamoDB-compatible server, that of internal/dynamotest, which
// this program starts. Each client is a process of its own, so that its CPU time and memory are its own. The server is
// another process, and so is this one, which has a proxy in front of the server that counts requests and adds latency.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncekit/oncekit/internal/dynamotest"
	"github.com/oncekit/oncekit/internal/lifetime"
)

func main() {
	if isClient, status := beClient(); isClient {
		os.Exit(status)
	}
	os.Exit(dynamotest.StopAfter(program{}).Run())
}

// program is what runs before the server is stopped.
type program struct{}

// Run measures what the command line says, and returns the exit status: 1 where it cannot or a target is missed.
func (program) Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := parseFlags(os.Args[1:], os.Stderr)
	if err != nil {
		return 2 // the error is printed
	}
	progress := func(text string) { fmt.Fprintf(os.Stderr, "%s: %s\n", time.Now().Format(time.TimeOnly), text) }
	var missed int
	err = lifetime.Live(func(t testing.TB) (err error) {
		_, missed, err = run(t, ctx, c, os.Stdout, progress)
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || missed > 0 {
		return 1
	}
	return 0
}

func parseFlags(args []string, errors io.Writer) (config, error) {
	c := config{
		concurrency:  64,
		scenarioSize: 1000,
		cutOff:       3 * time.Second,
		memory:       memoryConfig{size: 10_000, few: 5, many: 25, max: "128MiB"},
	}
	flags := flag.NewFlagSet("comparison", flag.ContinueOnError)
	flags.SetOutput(errors)
	sizes := flags.String("sizes", "10,100,1000,10000", "batch `sizes`")
	latencies := flags.String("latencies", "0s,4ms", "`latencies` to add to each request")
	flags.IntVar(&c.rounds, "rounds", 3, "how many `rounds` to take the medians of")
	flags.IntVar(&c.records, "records", 2000, "measure at least so many `records` at a time")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	fail := func(name string, got any, want string) (config, error) {
		err := fmt.Errorf("comparison: -%s is %v, want %s", name, got, want)
		fmt.Fprintln(errors, err)
		return c, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || size > 10_000 {
			return fail("sizes", *sizes, "numbers from 1 to 10,000, with commas between them")
		}
		c.sizes = append(c.sizes, size)
	}
	for text := range strings.SplitSeq(*latencies, ",") {
		latency, err := time.ParseDuration(text)
		if err != nil || latency < 0 {
			return fail("latencies", *latencies, "durations such as 4ms, with commas between them")
		}
		c.latencies = append(c.latencies, latency)
	}
	if c.rounds < 1 {
		return fail("rounds", c.rounds, "at least 1")
	}
	if c.records < 1 {
		return fail("records", c.records, "at least 1")
	}
	return c, nil
}

// run measures everything and writes the report. It returns how many targets are missed.
func run(
	t testing.TB, ctx context.Context, cfg config, out io.Writer, progress func(string),
) (m measurements, missed int, err error) {
	c, err := begin(t, ctx, cfg)
	if err != nil {
		return m, 0, err
	}
	if m, err = c.measureAll(progress); err != nil {
		return m, 0, err
	}
	p := &printer{w: out}
	p.printf("%s %d messages at once, medians of %d rounds of at least %d records.\n",
		machine(), cfg.concurrency, cfg.rounds, cfg.records)
	p.printf("The proxy took %.1f µs of CPU a request, which is in no client's figures.\n", m.proxyCPU)
	p.printFigures(cfg, m.figures)
	p.printScenarios(cfg, m.scenarios)
	p.printMemory(cfg, m.memory)
	missed = p.printTargets(targets(cfg, m))
	return m, missed, p.err
}

// machine says what the program runs on, as far as that is known.
func machine() string {
	model := "unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	node := "no Node.js"
	if version, err := exec.Command("node", "--version").Output(); err == nil {
		node = "Node.js " + strings.TrimSpace(string(version))
	}
	return fmt.Sprintf("%s/%s, %d CPUs (%s), %s, %s.",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, runtime.Version(), node)
}
