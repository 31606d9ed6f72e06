package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oncekit/oncekit/idempotency"
	"github.com/oncekit/oncekit/idempotency/redisstore"
	"github.com/oncekit/oncekit/idempotency/storetest"
	"github.com/oncekit/oncekit/internal/redistest"
)

func TestConformance(t *testing.T) {
	for _, server := range servers {
		for _, client := range clients {
			t.Run(server.name+"/"+client.name, func(t *testing.T) {
				t.Parallel()
				address := server.start(t)
				p := planter{redisstore.New(client.connect(t, address, "", "")), redistest.GoRedis(t, address)}
				storetest.Test(t, func(testing.TB) idempotency.Store {
					if server.name == "in memory" {
						return single{p, p} // its interpreter takes a minute for the rest
					}
					return p
				})
			})
		}
	}
}

// single is a planter without the bulk forms.
type single struct {
	idempotency.Store
	storetest.Planter
}

// planter writes entries as they are. No other tool writes this layout, but another version of this package may.
type planter struct {
	*redisstore.Store
	direct *redis.Client
}

func (p planter) Plant(t testing.TB, key string, e idempotency.Entry) {
	t.Helper()
	fields := map[string]any{"status": e.Status.String()}
	if e.Owner != "" {
		fields["owner"] = e.Owner
	}
	if e.Fingerprint != "" {
		fields["fingerprint"] = e.Fingerprint
	}
	if !e.Lease.IsZero() {
		fields["lease"] = e.Lease.UnixMilli()
	}
	if !e.Expiry.IsZero() {
		fields["expiry"] = e.Expiry.Unix()
	}
	if e.Data != nil {
		fields["data"] = e.Data
	}
	if e.Attempts != 0 {
		fields["attempts"] = e.Attempts
	}
	plant(t, p.direct, key, fields)
}

func plant(t testing.TB, direct *redis.Client, key string, fields map[string]any) {
	t.Helper()
	must(t, direct.Del(t.Context(), "idempotency:"+key).Err())
	must(t, direct.HSet(t.Context(), "idempotency:"+key, fields).Err())
}
