package kinesis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/sources/kinesis"
)

// documented is the example of a record in AWS's documentation, with members of its own.
const documented = `{
	"kinesis": {
		"kinesisSchemaVersion": "1.0", "partitionKey": "key \"1\"", "unknown": [1],
		"sequenceNumber": "49590338271490256608559692538361571095921575989136588898",
		"data": "SGVsbG8sIHRoaXMgaXMgYSB0ZXN0Lg\u003d=", "approximateArrivalTimestamp": 1545084650.987, "encryptionType": "KMS"
	},
	"eventSource": "aws:kinesis", "eventVersion": "1.0",
	"eventID": "shardId-000000000006:49590338271490256608559692538361571095921575989136588898",
	"eventName": "aws:kinesis:record", "invokeIdentityArn": "arn:aws:iam::123456789012:role/lambda-role",
	"awsRegion": "us-east-2", "unknown": {"eventID": "inner"},
	"eventSourceARN": "arn:aws:kinesis:us-east-2:123456789012:stream/lambda-stream/consumer/a:1"
}`

func TestRecord(t *testing.T) {
	h := newHandler(t, func(_ context.Context, r *kinesis.Record[string]) error {
		sub, aggregated := r.SubSequenceNumber()
		for _, test := range []struct {
			method    string
			want, got any
		}{
			{"Data", "Hello, this is a test.", r.Data},
			{"RawData", []byte("Hello, this is a test."), r.RawData()},
			{"ID", "shardId-000000000006:49590338271490256608559692538361571095921575989136588898", r.ID()},
			{"PartitionKey", `key "1"`, r.PartitionKey()},
			{"SequenceNumber", "49590338271490256608559692538361571095921575989136588898", r.SequenceNumber()},
			{"SubSequenceNumber", []any{0, false}, []any{sub, aggregated}},
			{"ShardID", "shardId-000000000006", r.ShardID()},
			{"StreamARN", "arn:aws:kinesis:us-east-2:123456789012:stream/lambda-stream", r.StreamARN()},
			{"ArrivedAt", time.UnixMilli(1545084650987), r.ArrivedAt()},
			{"JSON", documented, r.JSON()},
		} {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.method, diff)
			}
		}
		var want events.KinesisEventRecord
		if err := json.Unmarshal([]byte(documented), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Raw()); diff != "" || string(r.Raw().Kinesis.Data) != r.Data {
			t.Errorf("Raw (-want +got):\n%s", diff)
		}
		return nil
	})
	wantCheckpoint(t, t.Context(), h, rawEvent(documented), "")
}

// A record of a literal, as tests of handlers make it, has data and nothing else. So has the zero View.
func TestRecordLiteral(t *testing.T) {
	r := &kinesis.Record[click]{Data: click{ID: "c1"}}
	sub, aggregated := r.SubSequenceNumber()
	got := []any{r.ID(), r.PartitionKey(), r.SequenceNumber(), sub, aggregated, r.ShardID(), r.StreamARN(), r.ArrivedAt(),
		r.RawData(), r.Raw(), r.JSON()}
	want := []any{"", "", "", 0, false, "", "", time.Time{}, []byte(nil), events.KinesisEventRecord{}, ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods of a literal (-want +got):\n%s", diff)
	}
}

// Timestamps are floats in Lambda's JSON, of whatever spelling. What is none is no time, and harms nobody.
func TestRecordArrivedAt(t *testing.T) {
	at := time.UnixMilli(1545084650987)
	for _, test := range []struct {
		value string
		want  time.Time
	}{
		{"1545084650.987", at}, {"1.545084650987E9", at}, {"1.545084650987e+09", at}, {"15450846509.87e-1", at},
		{"1545084650", time.Unix(1545084650, 0)}, {"1545084650.000401", time.UnixMicro(1545084650000401)},
		{"0.5", time.UnixMilli(500)}, {"0", time.Time{}}, {"-1.5", time.Time{}},
		{"1e300", time.Time{}}, {"-1e300", time.Time{}}, {"1e400", time.Time{}}, {"9223372036854775807", time.Time{}},
		{"99999999999999999999999999", time.Time{}},
		{`"1545084650.987"`, time.Time{}}, {`"2018-12-17T22:10:50Z"`, time.Time{}}, {`""`, time.Time{}},
		{"null", time.Time{}}, {"true", time.Time{}}, {"{}", time.Time{}}, {"[1]", time.Time{}},
	} {
		h := newHandler(t, func(_ context.Context, r *kinesis.Record[string]) error {
			if got := r.ArrivedAt(); !got.Equal(test.want) || got.IsZero() != test.want.IsZero() {
				t.Errorf("%s: arrived at %v, want %v", test.value, got, test.want)
			}
			if r.Raw().EventID != eventID(0) {
				t.Errorf("%s: Raw is %+v, want the record", test.value, r.Raw())
			}
			_ = fmt.Sprint(r.ArrivedAt())
			return nil
		}, guarded(t))
		text := change(record{Data: "a", Key: "a", At: at}, "1545084650.987", test.value)
		wantCheckpoint(t, t.Context(), h, rawEvent(text), "")
	}
}

// Handle goes through the same JSON as Invoke: what the handler sees of a record is what was handed in.
func TestRecordOfHandle(t *testing.T) {
	in := events.KinesisEventRecord{
		EventID: eventID(1), EventSource: "aws:kinesis", EventSourceArn: clicksARN, AwsRegion: "us-east-2",
		Kinesis: events.KinesisRecord{Data: []byte("\xff<b>"), PartitionKey: "\u2028<", SequenceNumber: sequence(1)},
	}
	in.Kinesis.ApproximateArrivalTimestamp.Time = time.UnixMilli(1545084650987)
	h := newHandler(t, func(_ context.Context, r *kinesis.Record[[]byte]) error {
		got := r.Raw()
		if !got.Kinesis.ApproximateArrivalTimestamp.Round(time.Millisecond).Equal(r.ArrivedAt()) ||
			!r.ArrivedAt().Equal(time.UnixMilli(1545084650987)) {
			t.Errorf("arrived at %v, want %v", r.ArrivedAt(), in.Kinesis.ApproximateArrivalTimestamp)
		}
		got.Kinesis.ApproximateArrivalTimestamp = in.Kinesis.ApproximateArrivalTimestamp
		if diff := cmp.Diff(in, got); diff != "" || string(r.Data) != "\xff<b>" {
			t.Errorf("data %q, record (-want +got):\n%s", r.Data, diff)
		}
		return nil
	})
	if _, err := h.Handle(t.Context(), events.KinesisEvent{Records: []events.KinesisEventRecord{in}}); err != nil {
		t.Fatal(err)
	}
}

// A record that a test leaves without a time has none, and is not warned about as an old one.
func TestRecordOfHandleWithoutATime(t *testing.T) {
	var logged logs
	h := newHandler(t, func(_ context.Context, r *kinesis.Record[string]) error {
		if !r.ArrivedAt().IsZero() {
			t.Errorf("arrived at %v, want the zero time", r.ArrivedAt())
		}
		return nil
	}, guarded(t), logged.option)
	in := events.KinesisEventRecord{EventID: eventID(1), EventSourceArn: clicksARN, Kinesis: events.KinesisRecord{
		Data: []byte("a"), SequenceNumber: sequence(1),
	}}
	if _, err := h.Handle(t.Context(), events.KinesisEvent{Records: []events.KinesisEventRecord{in}}); err != nil {
		t.Fatal(err)
	}
	if text := logged.Text(); len(logged.Lines(t)) != 1 {
		t.Errorf("lines are\n%swant the summary alone", text)
	}
}

// DataSHA256 is that of the data's bytes, not of their base64, and of an aggregate's record alone.
func TestDataSHA256(t *testing.T) {
	var sums []string
	h := newHandler(t, func(context.Context, *kinesis.Record[string]) error { return nil }, guarded(t), concurrency(1), func(o *kinesis.Options) {
		o.Fingerprint = func(v kinesis.View) (string, error) {
			sum, err := kinesis.DataSHA256(v)
			sums = append(sums, sum)
			return sum, err
		}
	})
	wantCheckpoint(t, t.Context(), h, event(record{Data: "abc", Key: "a"}, record{Data: aggregate("abc", "xbc"), Key: "a", N: 1}), "")
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if len(sums) != 3 || sums[0] != abc || sums[1] != abc || sums[2] == abc {
		t.Errorf("hashes are %q, want the first two %q, and another", sums, abc)
	}
}
