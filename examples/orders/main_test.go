package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/examples/orders/internal/simulation"
	"github.com/oncekit/oncekit/internal/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.StopAfter(m).Run()) }

// program runs the program with the arguments.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	code, stdout, stderr := program(t, "-h")
	if code != success || stderr != "" {
		t.Errorf("exit code %d, stderr %q; want success", code, stderr)
	}
	for _, flag := range []string{"-orders", "-seed", "-concurrency", "-endpoint", "-table", "-event"} {
		if !strings.Contains(stdout, "\n  "+flag+" ") {
			t.Errorf("help does not explain %s:\n%s", flag, stdout)
		}
	}
}

func TestWrongCommandLine(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the message
	}{
		{"-orders 0", "-orders is 0, want 1 to 10000"},
		{"-orders 10001", "-orders is 10001, want 1 to 10000"},
		{"-orders many", `invalid value "many" for flag -orders`},
		{"-concurrency 0", "-concurrency is 0, want 1 to 10000"},
		{"-concurrency 10001", "-concurrency is 10001, want 1 to 10000"},
		{"-seed -1", `invalid value "-1" for flag -seed`},
		{"-endpoint localhost:8000", `-endpoint is "localhost:8000", want a URL such as http://localhost:8000`},
		{"-endpoint ftp://localhost", `-endpoint is "ftp://localhost", want a URL`},
		{"-table=", "-table is empty"},
		{"-event=", "-event is empty"},
		{"-ordres 5", "not defined: -ordres"},
		{"run", `"run" is no flag`},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := program(t, strings.Fields(test.args)...)
			if code != usage || stdout != "" || !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "-h") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want code %d and %q", code, stdout, stderr, usage, test.want)
			}
		})
	}
}

// TestSameSeedSameTable runs the whole program twice, in no time.
func TestSameSeedSameTable(t *testing.T) {
	var outputs []string
	for _, seed := range []string{"5", "5", "6"} {
		synctest.Test(t, func(t *testing.T) {
			code, stdout, stderr := program(t, "-seed", seed)
			time.Sleep(5 * time.Second) // for what the end of the run has let go
			if code != success || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			outputs = append(outputs, stdout)
		})
	}
	if diff := cmp.Diff(outputs[0], outputs[1]); diff != "" {
		t.Errorf("output (-first run +second run):\n%s", diff)
	}
	if outputs[0] == outputs[2] {
		t.Errorf("two seeds have the same output:\n%s", outputs[0])
	}
	for _, want := range []string{
		"200 orders, seed 5, claims in memory\n", "\nround 1: ", "\norders sent                               200        200\n",
		"\nrepeated: ", "\nlost: 0\n", "a crash fell between charge and completion",
	} {
		if !strings.Contains(outputs[0], want) {
			t.Errorf("output has no %q:\n%s", want, outputs[0])
		}
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var stdout, stderr bytes.Buffer
		if code := run(ctx, nil, &stdout, &stderr); code != failure || strings.Contains(stdout.String(), "lost:") {
			t.Errorf("exit code %d, want %d and no table:\n%s", code, failure, stdout.String())
		}
		time.Sleep(5 * time.Second) // for what the end of the run has let go
	})
}

// TestVerdict is the exit code: a run in which the guard broke its word is a failure.
func TestVerdict(t *testing.T) {
	explained := simulation.Repeat{Order: "order-0001", Cause: "a crash"}
	for _, test := range []struct {
		name   string
		result simulation.Result
		want   string
	}{
		{"nothing", simulation.Result{}, ""},
		{"explained", simulation.Result{Repeats: []simulation.Repeat{explained}}, ""},
		{"lost", simulation.Result{Lost: []string{"order-0007", "order-0009"}}, "2 orders were lost: order-0007, order-0009"},
		{
			"unexplained", simulation.Result{Repeats: []simulation.Repeat{explained, {Unexplained: true}}},
			"1 orders were charged again without a reason",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := verdict(&test.result); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("verdict is %q, want %q", got, test.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	with := &simulation.Result{
		Orders: 3, Duplicates: 1, Retries: 2, Deliveries: 6, Runs: 4, Replays: 1, Charged: 1, Crashes: 1,
		Repeats:      []simulation.Repeat{{Order: "order-0001", First: 1, Again: 2, Cause: "a crash"}},
		DeadLettered: []simulation.DeadLetter{{Order: "order-0002", Err: errors.New("declined"), Charged: true}},
		Lost:         []string{"order-0003"},
	}
	without := &simulation.Result{Orders: 3, Repeats: make([]simulation.Repeat, 5)}
	var got bytes.Buffer
	if err := printResult(&got, with, without); err != nil {
		t.Fatal(err)
	}
	want := `
                                      oncekit   no guard
orders sent                                 3          3
+ delivered twice by the queue              1          0
+ retries                                   2          0   after a failure or a crash
= deliveries                                6          0
handler runs                                4          0
replays                                     1          0   done before, so the handler did not run
in progress elsewhere                       0          0   came back later
handlers given up                           0          0   hung, and ignored their context
crashes in mid-batch                        1          0
store calls throttled                       0          0
store replies lost                          0          0
orders charged                              1          0
dead-lettered                               1          0
charged again                               1          5
lost                                        1          0   neither charged nor dead-lettered

dead-lettered: 1
  order-0002: declined (it was charged)
repeated: 1
  order-0001: a crash (invocation 1, charged again by 2)
lost: 1
  order-0003
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

const (
	brokenID   = "2e1424d4-f796-459a-8184-9c92662be6da" // in testdata/event.json
	declinedID = "f3a4c1de-6f0b-4d6e-9f43-0d8e1a5b7c21"

	eventResponse = `{"batchItemFailures":[{"itemIdentifier":"` + brokenID + `"},{"itemIdentifier":"` + declinedID + `"}]}`
)

func TestEvent(t *testing.T) {
	code, stdout, stderr := program(t, "-event", "testdata/event.json")
	if code != success || stdout != eventResponse+"\n" {
		t.Errorf("exit code %d, response %q, want %q", code, stdout, eventResponse)
	}
	if got := strings.Count(stderr, "msg=charged"); got != 1 || !strings.Contains(stderr, "order=order-0001") {
		t.Errorf("%d charges, want one of order-0001:\n%s", got, stderr)
	}
}

func TestEventFails(t *testing.T) {
	noEvent := t.TempDir() + "/event.json"
	if err := os.WriteFile(noEvent, []byte(`{"detail-type":"order placed"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, want string }{
		{"testdata/none.json", "testdata/none.json: no such file"},
		{noEvent, noEvent + ": sqs: "},
	} {
		code, stdout, stderr := program(t, "-event", test.file)
		if code != failure || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("exit code %d, stdout %q, stderr %q; want code %d and %q", code, stdout, stderr, failure, test.want)
		}
	}
}

// TestEventOnTable hands the same event to the program twice: the table remembers it.
func TestEventOnTable(t *testing.T) {
	client, endpoint := dynamotest.Client(t), dynamotest.Start(t)
	table := dynamotest.Table(t, client)
	for delivery, charges := range []int{1, 0} {
		code, stdout, stderr := program(t, "-endpoint", endpoint, "-table", table, "-event", "testdata/event.json")
		if code != success || stdout != eventResponse+"\n" {
			t.Fatalf("exit code %d, response %q, want %q:\n%s", code, stdout, eventResponse, stderr)
		}
		if got := strings.Count(stderr, "msg=charged"); got != charges {
			t.Errorf("delivery %d: %d charges, want %d:\n%s", delivery+1, got, charges, stderr)
		}
	}
}

// TestSimulationOnTable is in real time, so it is short. The run creates its table.
func TestSimulationOnTable(t *testing.T) {
	client, endpoint := dynamotest.Client(t), dynamotest.Start(t)
	const table = "oncekit-test-orders-example"
	t.Cleanup(func() {
		name := table
		if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Errorf("delete the table: %v", err)
		}
	})
	// The one batch of this seed crashes, so that there is something to take over.
	code, stdout, stderr := program(t, "-endpoint", endpoint, "-table", table, "-orders", "5", "-seed", "5")
	if code != success {
		t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	var inMemory string
	synctest.Test(t, func(t *testing.T) {
		_, inMemory, _ = program(t, "-orders", "5", "-seed", "5")
		time.Sleep(5 * time.Second) // for what the end of the run has let go
	})
	if !strings.Contains(stdout, "crashes in mid-batch                        1 ") {
		t.Errorf("nothing crashed:\n%s", stdout)
	}
	if diff := cmp.Diff(strings.Replace(inMemory, "memory", "table "+table, 1), stdout); diff != "" {
		t.Errorf("output (-in memory +in the table):\n%s", diff)
	}
}

func TestTableIsMissing(t *testing.T) {
	endpoint := dynamotest.Start(t)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": endpoint, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		if os.Getenv(name) == "" {
			t.Setenv(name, value)
		}
	}
	const want = `dynamodb:PutItem on table "oncekit-test-no-such-table"`
	code, stdout, stderr := program(t, "-table", "oncekit-test-no-such-table")
	if code != failure || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, stdout %q, stderr %q; want a failure that names the table", code, stdout, stderr)
	}
}
