package dynamostore

import (
	"fmt"
	"os"
	"strings"
)

// TableVariable is the environment variable that names the table where New is told none.
const TableVariable = "ONCEKIT_IDEMPOTENCY_TABLE"

// tableName returns the table that is meant by table, and an error if it is none.
func tableName(table string) (string, error) {
	what := "table"
	if table == "" {
		table = os.Getenv(TableVariable)
		what = "the environment variable " + TableVariable
	}
	const want = "want 3 to 255 of the characters a-z, A-Z, 0-9, _, . and -, or an ARN"
	switch {
	case table == "":
		return "", fmt.Errorf(`dynamostore: table is "" and %s is not set; %s`, what, want)
	case !isTable(table):
		return table, fmt.Errorf("dynamostore: %s is %q; %s", what, table, want)
	default:
		return table, nil
	}
}

func isTable(table string) bool {
	// The data operations take a table's ARN as well. The rest is what CreateTable accepts (DynamoDB API Reference).
	if strings.HasPrefix(table, "arn:") {
		return true
	}
	for _, c := range table {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
		if !ok {
			return false
		}
	}
	return len(table) >= 3 && len(table) <= 255
}
