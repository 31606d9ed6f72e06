package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
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
	for _, limit := range []string{
		fmt.Sprintf("are sent, 1 to %d (default 200)", maxOrders),
		fmt.Sprintf("0 to %d (default %d)", uint64(math.MaxUint64), defaultSeed),
		fmt.Sprintf("at once, 1 to %d (default %d;", batch.MaxConcurrency, batch.DefaultConcurrency),
		fmt.Sprintf("within %v seconds", eventTimeout.Seconds()), "http or https", defaultTable,
	} {
		if !strings.Contains(stdout, limit) {
			t.Errorf("help does not say %q:\n%s", limit, stdout)
		}
	}
}

func TestWrongCommandLine(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the message
	}{
		{"-orders 0", `invalid value "0" for flag -orders: want a whole number from 1 to 10000`},
		{"-orders 10001", `invalid value "10001" for flag -orders: want a whole number from 1 to 10000`},
		{"-orders many", `invalid value "many" for flag -orders: want a whole number from 1 to 10000`},
		{"-concurrency 0", `invalid value "0" for flag -concurrency: want a whole number from 1 to 10000`},
		{"-concurrency 10001", `invalid value "10001" for flag -concurrency: want a whole number from 1 to 10000`},
		{"-seed -1", `invalid value "-1" for flag -seed: want a whole number from 0 to 18446744073709551615`},
		{"-endpoint localhost:8000", `-endpoint is "localhost:8000", want a URL such as http://localhost:8000`},
		{"-endpoint ftp://localhost", `-endpoint is "ftp://localhost", want a URL`},
		{"-table=", "-table is empty"},
		{"-event=", "-event is empty"},
		{"-ordres 5", "not defined: -ordres"},
		{"run", `unexpected argument "run"`},
		{"-orders 5 run", `unexpected argument "run"`},
		{"-event testdata/event.json -orders 5", "-orders is of no use with -event"},
		{"-seed 20 -event testdata/event.json", "-seed is of no use with -event"},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, stdout, stderr := program(t, strings.Fields(test.args)...)
			if code != usage || stdout != "" || !strings.Contains(stderr, test.want) || !strings.Contains(stderr, "-h") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want code %d and %q", code, stdout, stderr, usage, test.want)
			}
		})
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
	if !strings.Contains(stdout, " 1 crash\n") {
		t.Errorf("nothing crashed:\n%s", stdout)
	}
	first, rest, _ := strings.Cut(stdout, "\n")
	if want := "5 orders, seed 5, idempotency records in table " + table + ". This takes about 5 seconds."; first != want {
		t.Errorf("first line is %q, want %q", first, want)
	}
	_, inMemory, _ = strings.Cut(inMemory, "\n")
	if diff := cmp.Diff(inMemory, rest); diff != "" {
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

// TestNobodyAnswers points the program at a port where nobody listens, and at a server that is none of DynamoDB.
func TestNobodyAnswers(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // the pauses between attempts would take a second
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for _, test := range []struct{ endpoint, cause string }{
		{nobody.URL, "connect"}, {other.URL, "404"},
	} {
		code, stdout, stderr := program(t, "-endpoint", test.endpoint)
		want := "orders: no DynamoDB server answers at " + test.endpoint + ": "
		if code != failure || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, test.cause) {
			t.Errorf("exit code %d, stdout %q, stderr %q; want a failure that begins with %q and tells of %q",
				code, stdout, stderr, want, test.cause)
		}
	}
}
