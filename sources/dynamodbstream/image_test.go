package dynamodbstream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/oncekit/oncekit/batch"
)

type order struct {
	ID      string            `dynamodbav:"pk"`
	Line    int               `dynamodbav:"sk"`
	Total   float64           `dynamodbav:"total"`
	Note    string            `dynamodbav:"note"`
	Blob    []byte            `dynamodbav:"blob"`
	Tags    []string          `dynamodbav:"tags"`
	Address map[string]any    `dynamodbav:"address"`
	Expires time.Time         `dynamodbav:"expires,unixtime"`
	Paid    *bool             `dynamodbav:"paid"`
	Lines   []struct{ N int } `dynamodbav:"lines"`
}

func decodeOne[T any](t *testing.T, raw string) (Change[T], error) {
	t.Helper()
	d := newDecoder[T]()
	var c Change[T]
	err := d.decode(recordOf(t, raw), &c)
	return c, err
}

func TestDecode(t *testing.T) {
	got, err := decodeOne[order](t, documented)
	if err != nil {
		t.Fatal(err)
	}
	want := Change[order]{
		Keys: order{ID: "order#1", Line: 7},
		New:  &order{ID: "order#1", Line: 7, Total: 12.5, Note: `café "x"`},
		Old:  &order{ID: "order#1", Line: 7, Total: 10, Blob: []byte{0, 1, 42, 65}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(View{})); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestDecodeEveryType(t *testing.T) {
	paid := true
	c, err := decodeOne[order](t, withImage(`{"pk":{"S":"x"},"sk":{"N":"-1"},"tags":{"SS":["a","b"]},"expires":{"N":"1480642020"},
		"paid":{"BOOL":true},"note":{"NULL":true},"unknown":{"BS":["AA=="]},"lines":{"L":[{"M":{"n":{"N":"1"}}},{"M":{}}]},
		"address":{"M":{"zip":{"N":"8001"},"city":{"S":"Zürich"},"l":{"L":[{"NULL":true},{"NS":["1"]}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &order{
		ID: "x", Line: -1, Tags: []string{"a", "b"}, Expires: time.Unix(1480642020, 0), Paid: &paid,
		Lines:   []struct{ N int }{{1}, {}},
		Address: map[string]any{"zip": 8001.0, "city": "Zürich", "l": []any{nil, []float64{1}}},
	}
	if diff := cmp.Diff(want, c.New); diff != "" {
		t.Errorf("new image (-want +got):\n%s", diff)
	}
}

// Which images there are depends on the operation and on the view type of the stream.
func TestDecodeImages(t *testing.T) {
	const item = `{"id":{"S":"x"}}`
	for _, test := range []struct {
		dynamodb string
		old, new bool
	}{
		{`{"Keys":` + item + `}`, false, false},
		{`{"Keys":` + item + `,"NewImage":` + item + `}`, false, true},
		{`{"Keys":` + item + `,"OldImage":` + item + `}`, true, false},
		{`{"Keys":` + item + `,"OldImage":` + item + `,"NewImage":` + item + `}`, true, true},
		{`{"Keys":` + item + `,"OldImage":null,"NewImage":null}`, false, false},
		{`{"Keys":` + item + `,"OldImage":{}}`, true, false},
	} {
		c, err := decodeOne[map[string]string](t, changed(test.dynamodb))
		if err != nil {
			t.Errorf("%s: %v", test.dynamodb, err)
		}
		if (c.Old != nil) != test.old || (c.New != nil) != test.new || c.Keys["id"] != "x" {
			t.Errorf("%s: old is %v, new is %v, keys are %v, want old: %v, new: %v, and keys", test.dynamodb, c.Old, c.New, c.Keys, test.old, test.new)
		}
	}
}

// A T of the SDK's own values is the item as it is, which the SDK panics at.
func TestDecodeIntoAttributeValues(t *testing.T) {
	c, err := decodeOne[map[string]types.AttributeValue](t, documented)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]attributeValue{"pk": &memberS{Value: "order#1"}, "sk": &memberN{Value: "7"}}
	if diff := cmp.Diff(want, c.Keys, sdkValues); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got := (*c.New)["total"]; !cmp.Equal(got, attributeValue(&memberN{Value: "12.50"}), sdkValues) {
		t.Errorf("total is %v, want N 12.50", got)
	}
}

// itself is a T with an UnmarshalDynamoDBAttributeValue.
type itself struct{ attributes int }

func (v *itself) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	m, ok := av.(*memberM)
	if !ok {
		return fmt.Errorf("SECRET %v", av)
	}
	if v.attributes = len(m.Value); v.attributes != 2 {
		return fmt.Errorf("SECRET %d attributes: %w", v.attributes, errItself)
	}
	return nil
}

var errItself = errors.New("no item")

func TestDecodeIntoAnUnmarshaler(t *testing.T) {
	decode := func(image string) (Change[itself], error) {
		return decodeOne[itself](t, changed(`{"Keys":{"a":{"S":"x"},"b":{"S":"y"}},"NewImage":`+image+`}`))
	}
	c, err := decode(`{"a":{"S":"x"},"b":{"S":"y"}}`)
	if err != nil || c.New.attributes != 2 {
		t.Errorf("new image is %v, error is %v, want two attributes", c.New, err)
	}
	_, err = decode(`{"a":{"S":"x"},"b":{"S":"y"},"c":{"S":"z"}}`) // of which no single one is at fault
	const want = `dynamodbstream: NewImage of change "e1" is not a valid dynamodbstream.itself: *fmt.wrapError`
	if err == nil || err.Error() != want || !errors.Is(err, errItself) {
		t.Errorf("error is %v, want %q with %v in it", err, want, errItself)
	}
}

type odd struct {
	ID    string `dynamodbav:"id"`
	I     int
	I8    int8
	U     uint
	F     float32
	S     string
	B     bool
	T     time.Time
	M     map[int]string
	K     map[[1]int]string
	A     [2]byte
	V     types.AttributeValue
	L     []struct{ N int }
	Quote quoting
	Panic panicking
}

type quoting struct{}

func (*quoting) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	return fmt.Errorf("cannot read %v", av.(*memberS).Value)
}

type panicking struct{}

func (*panicking) UnmarshalDynamoDBAttributeValue(types.AttributeValue) error { panic("on purpose") }

// An item may be personal. The error of one that does not fit says what does not and where, and shows no value. Who
// wants to see it finds the SDK's own error in it.
func TestDecodeErrors(t *testing.T) {
	misfit, unfit, number := new(*attributevalue.UnmarshalTypeError), new(*attributevalue.UnmarshalError), new(*strconv.NumError)
	panicked := new(*batch.PanicError)
	for _, test := range []struct {
		name, value string
		as          any
		want        string
	}{
		{"I", `{"S":"SECRET"}`, misfit, "string does not fit a Go int"},
		{"I", `{"M":{}}`, misfit, "map does not fit a Go int"},
		{"I", `{"N":"4111.5"}`, number, "number does not fit its field: invalid syntax"},
		{"I", `{"N":"41111111111111111111111"}`, number, "number does not fit its field: value out of range"},
		{"I8", `{"N":"4111"}`, misfit, "number does not fit a Go int8"},
		{"U", `{"N":"-4111"}`, number, "number does not fit its field: invalid syntax"},
		{"F", `{"N":"4111E80"}`, misfit, "number does not fit a Go float32"},
		{"S", `{"SS":["SECRET"]}`, misfit, "string set does not fit a Go string"},
		{"S", `{"B":"4111"}`, misfit, "binary does not fit a Go string"},
		{"B", `{"S":"SECRET"}`, misfit, "string does not fit a Go bool"},
		{"S", `{"BOOL":true}`, misfit, "bool does not fit a Go string"},
		{"T", `{"S":"SECRET"}`, unfit, "value does not fit a Go time.Time"},
		{"T", `{"N":"4111.5"}`, unfit, "value does not fit a Go time.Time"},
		{"M", `{"M":{"SECRET":{"S":"x"}}}`, misfit, "map key does not fit a Go int"},
		{"K", `{"M":{"SECRET":{"S":"x"}}}`, misfit, "map key does not fit a Go [1]int"},
		{"L", `{"L":[{"M":{"N":{"S":"SECRET"}}}]}`, misfit, "string does not fit a Go int"},
		{"Quote", `{"S":"SECRET"}`, new(error), "*"},
		{"A", `{"B":"AAEC"}`, panicked, "batch: panic: reflect: call of reflect.Value.SetLen on array Value"},
		{"A", `{"B":"AA=="}`, panicked, "batch: panic: reflect: call of reflect.Value.SetLen on array Value"},
		{"V", `{"S":"SECRET"}`, panicked, "batch: panic: reflect"},
		{"V", `{"M":{"SECRET":{"S":"SECRET"}}}`, panicked, "batch: panic: reflect"},
		{"Panic", `{"S":"SECRET"}`, panicked, "batch: panic: on purpose"},
	} {
		for _, member := range []string{"Keys", "OldImage", "NewImage"} {
			// The attributes around it are fine, and the SDK takes them in any order.
			dynamodb := `{"Keys":{"id":{"S":"k"}},"` + member + `":{"id":{"S":"x"},` + quote(test.name) + `:` + test.value + `,"Z":{"S":"SECRET"}}}`
			c, err := decodeOne[odd](t, changed(dynamodb))
			want := `dynamodbstream: ` + member + ` of change "e1" is not a valid dynamodbstream.odd: attribute "` + test.name + `": ` + test.want
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "4111") {
				t.Errorf("%s: error is %v, want %q, and no values", dynamodb, err, want)
			}
			if !errors.As(err, test.as) {
				t.Errorf("%s: error is %v, want a %T in it", dynamodb, err, test.as)
			}
			if c.New != nil || c.Old != nil || c.Keys.ID != "" {
				t.Errorf("%s: change is %v, want nothing set", dynamodb, c)
			}
		}
	}
	if stack := (*panicked).Stack; !strings.Contains(string(stack), "panicking") {
		t.Errorf("stack of the last panic is %s, want that of its method", stack)
	}
}

// The SDK stops at whichever attribute it happens to take first. The error names the first by name, every time.
func TestDecodeErrorsAreTheSameEveryTime(t *testing.T) {
	for range 20 {
		_, err := decodeOne[map[string]int](t, changed(`{"Keys":{"d":{"S":"x"},"c":{"B":""},"b":{"S":"x"},"a":{"N":"1"}}}`))
		const want = `dynamodbstream: Keys of change "e1" is not a valid map[string]int: attribute "b": string does not fit a Go int`
		if err == nil || err.Error() != want {
			t.Fatalf("error is %v, want %q", err, want)
		}
	}
}

func TestDecodeErrorsOfTheJSON(t *testing.T) {
	for _, test := range []struct{ dynamodb, want string }{
		{`{}`, `dynamodbstream: change "e1" has no Keys, want those of its item`},
		{`{"Keys":null,"NewImage":{"id":{"S":"x"}}}`, `dynamodbstream: change "e1" has no Keys, want those of its item`},
		{`{"Keys":"x"}`, `dynamodbstream: Keys of change "e1": it is a string, want an object`},
		{`{"Keys":{"id":{"S":"x"}},"NewImage":[]}`, `dynamodbstream: NewImage of change "e1": it is an array, want an object`},
		{`{"Keys":{"id":{"S":"x"}},"NewImage":{"a":{"SS":["a",1]}}}`,
			`dynamodbstream: NewImage of change "e1": attribute "a"[1] S is a number, want a string`},
		{`{"Keys":{"id":{"S":"x"}},"OldImage":{"a":{"N":"abc"}},"NewImage":{}}`,
			`dynamodbstream: OldImage of change "e1": attribute "a" N is text of 3 bytes that is no number, want one`},
	} {
		if _, err := decodeOne[map[string]any](t, changed(test.dynamodb)); err == nil || err.Error() != test.want {
			t.Errorf("%s: error is %v, want %q", test.dynamodb, err, test.want)
		}
	}
}
