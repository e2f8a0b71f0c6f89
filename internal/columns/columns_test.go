package columns_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/columns"
)

type row struct {
	name  string
	size  *int64
	place string
}

func TestSort(t *testing.T) {
	t.Parallel()
	rows := []row{{"d", nil, "x"}, {"b", new(int64(2)), ""}, {"c", new(int64(9)), "y"}, {"a", new(int64(2)), "x"}}
	for order, want := range map[string]string{
		"name": "abcd", "-name": "dcba",
		"size": "abcd", "-size": "cabd", // equal ones by name, unknown ones last
		"place": "adcb", "-place": "cadb",
	} {
		list := append([]row{}, rows...)
		columns.Sort(list, order, func(r *row) string { return r.name }, func(r *row, column string) columns.Value {
			if column == "size" {
				return columns.Number(r.size)
			}
			return columns.Text(r.place)
		})
		got := ""
		for _, r := range list {
			got += r.name
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", order, diff)
		}
	}
}
