package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestWorkersAreForgottenTogetherOrNot(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.leave("celery@left")
	f.leave("celery@gone")
	forget := func(workers string) (int, map[string]any) {
		w := send(t, f, http.MethodPost, "/forget", `{"workers":[`+workers+`]}`)
		return w.Code, decode(t, w.Body.String())
	}
	status, body := forget(`"celery@left","celery@w1"`)
	if detail := fmt.Sprint(body["detail"]); status != http.StatusConflict || !strings.Contains(detail, "celery@w1 is online") {
		t.Errorf("with one that is online = %d %v, want 409", status, body)
	}
	if w := get(t, f, "/workers/celery@left"); w.Code != http.StatusOK {
		t.Errorf("it is forgotten although another could not be: %d", w.Code)
	}
	if status, body = forget(`"celery@left","celery@gone","celery@left"`); status != http.StatusOK || fmt.Sprint(body["changed"]) != "2" {
		t.Errorf("two that have left = %d %v, want 2 changed", status, body)
	}
	if w := get(t, f, "/workers/celery@left"); w.Code != http.StatusNotFound {
		t.Errorf("a forgotten worker = %d, want 404", w.Code)
	}
	items := decode(t, get(t, f, "/audit").Body.String())["items"].([]any)
	if record := items[0].(map[string]any); len(items) != 1 || record["action"] != "forget" || record["actor"] != "ada" ||
		record["target"] != "celery@gone and celery@left" {
		t.Errorf("audit log = %v, want one record", items)
	}
	f.leave("celery@left")
	if w := get(t, f, "/workers/celery@left"); w.Code != http.StatusOK {
		t.Errorf("a forgotten worker that is heard again = %d, want 200", w.Code)
	}
}
