package powertoolstest_test

import (
	"crypto"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/oncekit/oncekit/idempotency/powertools"
	"github.com/oncekit/oncekit/internal/powertoolstest"
)

// vectors are those of package powertools, which this test keeps true.
const vectors = "../../idempotency/powertools/testdata/"

func testLines(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(vectors + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// compareKeys has both compute the keys and fingerprints of the payloads.
func compareKeys(t *testing.T, peer *powertoolstest.Peer, f powertoolstest.Function, hash crypto.Hash, payloads []string) {
	t.Helper()
	keys, err := powertools.NewKeys(powertools.TypeScript, func(o *powertools.Options) { o.Hash, o.HashEmpty = hash, true })
	if err != nil {
		t.Fatal(err)
	}
	namespace := powertools.TypeScript.Namespace(f.Name, "")
	if f.KeyPrefix != "" {
		namespace = f.KeyPrefix
	}
	f.Config.PayloadValidation = "@" // all of it
	for i, want := range peer.Keys(t, f, payloads...) {
		fingerprint, err := keys.Fingerprint([]byte(payloads[i]))
		if err != nil || fingerprint != want.Validation {
			t.Errorf("fingerprint of %s is %s, %v; want %s", payloads[i], fingerprint, err, want.Validation)
		}
		key, err := keys.Key([]byte(payloads[i]))
		if payloads[i] == "null" {
			key = fingerprint // which Powertools hashes, and a Guard must not
		}
		if err != nil || namespace+"#"+key != want.Key {
			t.Errorf("key of %s is %s#%s, %v; want %s", payloads[i], namespace, key, err, want.Key)
		}
	}
}

func TestTypeScriptKeys(t *testing.T) {
	peer := powertoolstest.Start(t)
	values := testLines(t, "values.txt")
	compareKeys(t, peer, powertoolstest.Function{Name: "orders"}, 0, values)
	compareKeys(t, peer, powertoolstest.Function{Name: "orders", KeyPrefix: "orders.place"}, 0, values)
	for name, hash := range map[string]crypto.Hash{
		"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384,
		"sha512": crypto.SHA512,
	} {
		f := powertoolstest.Function{Name: "orders", Config: powertoolstest.Config{HashFunction: name}}
		compareKeys(t, peer, f, hash, values)
	}

	f := powertoolstest.Function{Name: "orders", KeyPrefix: "p"}
	want := testLines(t, "typescript.txt")
	for i, got := range peer.Keys(t, f, values...) {
		if got.Key != "p#"+want[i] {
			t.Errorf("typescript.txt: line %d is %s, but Powertools has %s", i+1, want[i], got.Key)
		}
	}
}

// TestMadeUpTypeScriptKeys compares payloads that nobody thought of, the same ones every time.
func TestMadeUpTypeScriptKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	payloads := make([]string, 1000)
	for i := range payloads {
		payloads[i] = madeUp(random, 4)
		if !json.Valid([]byte(payloads[i])) {
			t.Fatalf("%s is no JSON", payloads[i])
		}
	}
	compareKeys(t, powertoolstest.Start(t), powertoolstest.Function{Name: "orders"}, 0, payloads)
}

// letters are such as have something about them: their case, their order, their escapes.
var letters = strings.Split(`a A b B z Z _ 0 1 9 - . ' · : é É ß ẞ σ ς Σ İ ı i I ǅ ǆ Ǆ ʰ ⓐ Ⓐ ͅ ̇ 𐐀 𐐨 😀 \ud83d \ude00 \ue000 \uffff \" \\ \/ \b \u0000 \u007f \u00AD K Å Ω`, " ")

func madeUpText(random *rand.Rand) string {
	var b strings.Builder
	b.WriteByte('"')
	for range random.IntN(5) {
		b.WriteString(letters[random.IntN(len(letters))])
	}
	b.WriteByte('"')
	return b.String()
}

func madeUp(random *rand.Rand, depth int) string {
	var parts []string
	switch n := random.IntN(40); {
	case depth > 0 && random.IntN(3) > 0 && n < 30:
		for range n * depth / 2 {
			parts = append(parts, madeUpText(random)+": "+madeUp(random, min(depth-1, 1)))
		}
		return "{" + strings.Join(parts, ",\n") + "}"
	case depth > 0 && n < 34:
		for range n / 8 {
			parts = append(parts, madeUp(random, depth-1))
		}
		return "[" + strings.Join(parts, " , ") + "]"
	case n < 20:
		return madeUpText(random)
	case n < 30:
		return strconv.FormatFloat(random.NormFloat64()*100, 'g', 1+random.IntN(20), 64)
	case n < 36:
		return strconv.FormatInt(random.Int64()>>random.IntN(63), 10) + "e" + strconv.Itoa(random.IntN(60)-30)
	default:
		return []string{"true", "false", "null", "0"}[n-36]
	}
}
