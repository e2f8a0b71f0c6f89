package query_test

import (
	"testing"

	"github.com/umbelhq/umbel/state/query"
)

func TestQueryInACluster(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"state:failure":                           "state:failure",
		"cluster:shop":                            "",
		"cluster:SHOP,billing name:pay":           "name:pay",
		"cluster:billing name:pay":                `id:""`,
		"-cluster:billing name:pay":               "name:pay",
		"-cluster:shop name:pay":                  `id:""`,
		"cluster:billing OR name:pay":             "name:pay",
		"cluster:shop OR name:pay":                "",
		"(cluster:billing x) OR (-cluster:x y)":   "y",
		"-(cluster:shop name:pay)":                "-name:pay",
		"-(cluster:billing OR -cluster:shop)":     "",
		"-(cluster:shop OR name:pay)":             `id:""`,
		"(cluster:shop OR x) (cluster:none OR y)": "y",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.In("shop").String(); got != want {
			t.Errorf("%s in shop is %q, want %q", text, got, want)
		}
	}
}
