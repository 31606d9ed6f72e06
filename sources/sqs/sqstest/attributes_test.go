package sqstest

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// The digests are what AWS answers for these attributes. The same vectors are in the tests of several emulators.
func TestMD5OfAttributes(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"timestamp", "1493147359900", "235c5c510d26fb653d073faed50ae77c"},
		{"timestamp", "1493147359901", "994258b45346a2cc3f9cbb611aa7af30"},
		{"SOME_Valid.attribute-Name", "1493147359900", "36655e7e9d7c0e8479fa3f3f42247ae7"},
	} {
		got := md5OfAttributes(map[string]events.SQSMessageAttribute{test.name: {StringValue: &test.value, DataType: "Number"}})
		if got != test.want {
			t.Errorf("digest of %s = %s is %s, want %s", test.name, test.value, got, test.want)
		}
	}
	binary := map[string]events.SQSMessageAttribute{"a": {BinaryValue: []byte("x"), DataType: "Binary"}}
	value := "x"
	str := map[string]events.SQSMessageAttribute{"a": {StringValue: &value, DataType: "Binary"}}
	if md5OfAttributes(binary) == md5OfAttributes(str) {
		t.Error("the digest of a binary value is that of no value, want another")
	}
}
