package dynamodbstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// byHand converts an item of aws-lambda-go to one of the SDK, as people do by hand.
func byHand(item map[string]events.DynamoDBAttributeValue) map[string]types.AttributeValue {
	m := make(map[string]types.AttributeValue, len(item))
	for name, v := range item {
		m[name] = valueByHand(v)
	}
	return m
}

func valueByHand(v events.DynamoDBAttributeValue) types.AttributeValue {
	switch v.DataType() {
	case events.DataTypeString:
		return &memberS{Value: v.String()}
	case events.DataTypeNumber:
		return &memberN{Value: v.Number()}
	case events.DataTypeBinary:
		return &memberB{Value: v.Binary()}
	case events.DataTypeBoolean:
		return &memberBOOL{Value: v.Boolean()}
	case events.DataTypeStringSet:
		return &memberSS{Value: v.StringSet()}
	case events.DataTypeNumberSet:
		return &memberNS{Value: v.NumberSet()}
	case events.DataTypeBinarySet:
		return &memberBS{Value: v.BinarySet()}
	case events.DataTypeMap:
		return &memberM{Value: byHand(v.Map())}
	case events.DataTypeList:
		list := []types.AttributeValue{}
		for _, element := range v.List() {
			list = append(list, valueByHand(element))
		}
		return &memberL{Value: list}
	default:
		return &memberNULL{Value: true}
	}
}

// standardItem decodes an item with encoding/json and the types of aws-lambda-go, which panic at some.
func standardItem(text string) (item map[string]types.AttributeValue, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	var decoded map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return nil, err
	}
	if decoded == nil {
		return nil, errors.New("null")
	}
	return byHand(decoded), nil
}

var itemSeeds = []string{
	`{}`, `null`, `[]`, `{"a":{"S":"x"}}`, `{"a":{"S":"x"},"a":{"N":"1"}}`, `{"a":{"S":"x","N":"1"}}`, `{"a":{"S":"x","S":"y"}}`,
	`{"a":{"L":[{"M":{"b":{"BS":["AA=="]}}},{"NULL":true}]},"b":{"SS":[]},"c":{"NS":["1","x"]},"d":{"BS":[1]}}`,
	"{\"\xff\":{\"S\":\"\xfe\\u00e9\\ud800\"}}", ` { "\u0061" : { "\u004e" : "1E5" } , "b" : { "BOOL" : false } } `,
	`{"a":{"NULL":false}}`, `{"a":{"B":"AAEC\n"}}`, `{"pk":{"S":"a"},"sk":{"B":"AA=="}}`, `{"pk":{"N":"-0.0e1"}}`, `{"a":{}}`,
}

// stricter are the refusals of what aws-lambda-go takes.
var stricter = []string{"is no number", "has more than one type", "NULL is", "lists and maps deep"}

// An item is what encoding/json and aws-lambda-go make of it. What they take and this refuses, it refuses for one of the
// reasons of stricter.
func FuzzParseItem(f *testing.F) {
	for _, seed := range append(itemSeeds, nested(5), nested(maxDepth+1)) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			_, _ = parseItem(text) // which must not panic
			return
		}
		got, problem := parseItem(text)
		want, err := standardItem(text)
		if problem != nil {
			for _, reason := range stricter {
				if strings.Contains(problem.Error(), reason) {
					return
				}
			}
			if err == nil {
				t.Fatalf("%q: error is %v, but aws-lambda-go takes it", text, problem)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q is %v, but aws-lambda-go refuses it: %v", text, got, err)
		}
		if diff := cmp.Diff(want, got, sdkValues); diff != "" {
			t.Errorf("%q (-aws-lambda-go +parseItem):\n%s", text, diff)
		}
	})
}

// A lane is computed of what is a key, and of nothing else, and twice the same.
func FuzzLane(f *testing.F) {
	for _, seed := range itemSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, keys string) {
		got, err := lane(keys)
		if !json.Valid([]byte(keys)) {
			return // which must not panic
		}
		if (got == "") != (err != nil) {
			t.Fatalf("lane of %q is %q, error is %v, want one of them", keys, got, err)
		}
		item, problem := parseItem(strings.TrimSpace(keys))
		if err != nil {
			return
		}
		if problem != nil || len(item) == 0 {
			t.Fatalf("lane of %q is %q, but as an item it is %v: %v", keys, got, item, problem)
		}
		// The item written anew, with its attributes in another order and without escapes, has the same lane.
		anew := map[string]map[string]any{}
		for name, v := range item {
			switch v := v.(type) {
			case *memberS:
				anew[name] = map[string]any{"S": v.Value}
			case *memberN:
				anew[name] = map[string]any{"N": v.Value}
			case *memberB:
				anew[name] = map[string]any{"B": v.Value}
			default:
				t.Fatalf("lane of %q is %q, but it has a %T", keys, got, v)
			}
		}
		text, err := json.Marshal(anew)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := lane(string(text)); again != got || err != nil {
			t.Errorf("lane of %q is %q, written as %s it is %q, %v", keys, got, text, again, err)
		}
	})
}

// Whatever is in a record, its methods and its decoding do not panic, and say that it is decoded or why not.
func FuzzRecord(f *testing.F) {
	f.Add(documented)
	for _, seed := range itemSeeds {
		f.Add(withImage(seed))
		f.Add(changed(`{"Keys":` + seed + `,"SizeBytes":` + seed + `,"ApproximateCreationDateTime":` + seed + `}`))
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !json.Valid([]byte(raw)) {
			return
		}
		r := recordOf(t, raw)
		v := View{r}
		_, _ = v.Raw(), v.CreatedAt()
		if v.ByTTL() && v.Operation() != Remove {
			t.Errorf("ByTTL is true for operation %q", v.Operation())
		}
		d, e := newDecoder[order](), newDecoder[map[string]types.AttributeValue]()
		var c Change[order]
		var whole Change[map[string]types.AttributeValue]
		err, errWhole := d.decode(r, &c), e.decode(r, &whole)
		if err == nil && errWhole != nil {
			t.Errorf("%q is decoded into an order, but not into attribute values: %v", raw, errWhole)
		}
		if err != nil && (!utf8.ValidString(err.Error()) || !strings.HasPrefix(err.Error(), "dynamodbstream: ")) {
			t.Errorf("error is %q", err)
		}
		if errWhole == nil && (whole.New == nil) != isAbsent(r.newImage) {
			t.Errorf("%q: new image is %v", raw, whole.New)
		}
	})
}
