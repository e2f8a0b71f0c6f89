"""Does what scripts for Flower's API do, and prints what it answers. Usage: client.py URL WORKER"""
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

base, worker = sys.argv[1], urllib.parse.quote(sys.argv[2])


def post(path, body=None, **form):
    data = json.dumps(body).encode() if body is not None else urllib.parse.urlencode(form).encode()
    return send(urllib.request.Request(base + path, data=data, method="POST"))


def send(request):
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def show(what, answer):
    print(what, *answer)


show("grow", post(f"/api/worker/pool/grow/{worker}", n=1))
show("shrink", post(f"/api/worker/pool/shrink/{worker}", n=1))
show("unknown worker", post("/api/worker/pool/grow/nobody"))

status, sent = post("/api/task/send-task/shop.add", {"args": [20, 22]})
print("send", status, sorted(sent))
status, result = send(urllib.request.Request(base + f"/api/task/result/{sent['task-id']}?timeout=30"))
print("result", status, result["result"], result["task-id"] == sent["task-id"])

status, applied = post("/api/task/apply/shop.fail", {"args": ["no stock"]})
print("apply", status, applied["state"], applied["result"], "no stock" in applied["traceback"])

status, later = post("/api/task/async-apply/shop.sleep", {"args": [1], "countdown": 3600})
print("later", status, later["state"])
show("revoke", (post(f"/api/task/revoke/{later['task-id']}", terminate="true")[0],))
show("limit", post("/api/task/rate-limit/shop.sleep", workername=sys.argv[2], ratelimit="10/m"))
