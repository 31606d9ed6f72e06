package kinesis_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/sources/kinesis"
)

func gunzip(limit int) func(*kinesis.Options) {
	return func(o *kinesis.Options) { o.Gunzip, o.MaxInflated = true, limit }
}

func deflate(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// Case 38: gzip data are inflated on request, by their header, up to the limit and no further.
func TestGunzip(t *testing.T) {
	text := strings.Repeat("log event ", 10_000)
	zipped := deflate(text)
	corrupt := []byte(zipped)
	corrupt[len(corrupt)-6]++ // the checksum
	for _, test := range []struct {
		name, data string
		limit      int
		want, err  string
	}{
		{"gzip", zipped, 0, text, ""},
		{"no gzip", text, 0, text, ""},
		{"nothing", "", 0, "", ""},
		{"gzip of nothing", deflate(""), 0, "", ""},
		{"gzip of gzip, once", deflate(zipped), 0, zipped, ""},
		{"half of the magic", "\x1f", 0, "\x1f", ""},
		{"another method", "\x1f\x8b\x07abc", 0, "\x1f\x8b\x07abc", ""},
		{"two members", deflate("one ") + deflate("two"), 0, "one two", ""},
		{"as much as the limit", zipped, len(text), text, ""},
		{"a byte more", zipped, len(text) - 1, "", "inflated size is more than 99999 bytes, want at most Options.MaxInflated"},
		{"a byte more, in two members", deflate("1234") + deflate("5678"), 7, "", "inflated size is more than 7 bytes"},
		{"more than the default", deflate(strings.Repeat("\x00", kinesis.DefaultMaxInflated+1)), 0, "", "inflated size is more than 16777216 bytes"},
		{"corrupt", string(corrupt), 0, "", "gzip: invalid checksum"},
		{"corrupt, as much as the limit", string(corrupt), len(text), "", "gzip: invalid checksum"},
		{"cut off", zipped[:len(zipped)/2], 0, "", "unexpected EOF"},
		{"header alone", zipped[:3], 0, "", "unexpected EOF"},
		{"bytes behind it", zipped + "bytes that are none of gzip", 0, "", "gzip: invalid header"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, data := range []string{test.data, aggregateOf(test.data)} {
				var failed errorHook
				w := &worker{}
				h := newHandler(t, w.handle, gunzip(test.limit), failed.option, guarded(t))
				payload := event(record{Data: data, Key: "k"}, record{Data: "b", Key: "b", N: 1})
				if test.err == "" {
					wantCheckpoint(t, t.Context(), h, payload, "")
					w.want(t, "b", test.want)
					continue
				}
				wantCheckpoint(t, t.Context(), h, payload, sequence(0))
				w.want(t, "b")
				wantError(t, failed.only(t), `kinesis: gzip data of record "`+eventID(0), test.err)
			}
			w := &worker{}
			wantCheckpoint(t, t.Context(), newHandler(t, w.handle), event(record{Data: test.data, Key: "k"}), "")
			w.wantOrder(t, test.data) // as they are
		})
	}
}

// RawData is what was put, whatever the decoder sees.
func TestGunzipLeavesRawData(t *testing.T) {
	zipped := deflate(`{"id":"c1"}`)
	h := newHandler(t, func(_ context.Context, r *kinesis.Record[click]) error {
		if r.Data.ID != "c1" || string(r.RawData()) != zipped {
			t.Errorf("data are %+v, raw %q, want the inflated and the gzip data", r.Data, r.RawData())
		}
		return nil
	}, gunzip(0))
	wantCheckpoint(t, t.Context(), h, event(record{Data: zipped, Key: "k"}), "")
}

func TestGunzipOptionErrors(t *testing.T) {
	for _, test := range []struct {
		option func(*kinesis.Options)
		want   string
	}{
		{gunzip(-1), "kinesis: Options.MaxInflated is -1, want 0 (for 16777216) to 1073741824"},
		{gunzip(kinesis.InflatedLimit + 1), "kinesis: Options.MaxInflated is 1073741825"},
		{func(o *kinesis.Options) { o.MaxInflated = 1 }, "kinesis: Options.MaxInflated is set, but Options.Gunzip is not"},
	} {
		_, err := kinesis.NewHandler((&worker{}).handle, test.option)
		wantError(t, err, test.want)
	}
	if _, err := kinesis.NewHandler((&worker{}).handle, gunzip(kinesis.InflatedLimit)); err != nil {
		t.Error(err)
	}
}
