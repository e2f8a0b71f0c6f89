"""Reads lines of JSON and answers each with one. {"write": s} asks for values in the serializer s, as [base64, JSON as Kombu
writes it]; {"read": s, "body": base64} for the JSON of a body, as Kombu reads it."""
import base64
import datetime
import json
import sys

from kombu import serialization
from kombu.utils import json as kombu_json

utc = datetime.timezone.utc
values = [
    None, True, False, 0, -1, 255, 256, 65536, -129, 2**31, -2**31 - 1, 2**63 - 1, -2**63, 2**64 - 1,
    0.0, -0.0, 1.5, 1e20, 1e-7, 1e100, 123456789.125, 5.0,
    "", " ", "a", "yes", "No", "null", "~", "1", "1.5", "1e3", "012", "0x1f", "1:30", "1_000", ".inf", "=", "<<", "2020-01-01",
    "2020-01-01 10:00:00", "a: b", "a #b", "- a", "'", '"', "\\", "é", "\u2028", "\x85", "\ufeff", "\U0001f600", "\x00\x01\x7f\x9f", "a\nb\n",
    "\n", " a ", "x" * 300 + " y" * 50, "%", "@", "`", "!", "&a", "*a", "?", "|", ">", "{", "[", ",", "---", "...", "\t",
    [], {}, [[]], [{}], {"": ""}, {"a": {"b": [1, {"c": None}]}}, {"yes": 1, "1": 2, "null": 3, "k" * 200: 4, "k" * 2000: 5}, [[1, [2, [3]]]],
    b"", b"ab\x00\xff", [b"x" * 300],
]
only = {
    "yaml": [
        2**70, float("inf"), datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5), datetime.datetime(2026, 1, 2, 3, 4, 5, 600, utc),
        {"at": [datetime.datetime(2026, 1, 2, 3, 4, 5, 120000, datetime.timezone(datetime.timedelta(hours=5, minutes=30)))]},
    ],
    "msgpack": [[1] * 20, ["a"] * 70000, {str(n): n for n in range(20)}, {str(n): n for n in range(70000)}],
}
shared = {"one": [1]}
only["yaml"].append([shared, shared, shared["one"]])

for line in sys.stdin:
    request = json.loads(line)
    if "write" in request:
        answer = []
        for value in values + only[request["write"]]:
            body = serialization.dumps([[value], {}, None], request["write"])[2]
            body = body.encode() if isinstance(body, str) else body
            answer.append([base64.b64encode(body).decode(), kombu_json.dumps([value])])
    else:
        kinds = {"yaml": ("application/x-yaml", "utf-8"), "msgpack": ("application/x-msgpack", "binary")}
        body = base64.b64decode(request["body"])
        answer = kombu_json.dumps(serialization.loads(body, *kinds[request["read"]], accept=[kinds[request["read"]][0]]))
    print(json.dumps(answer), flush=True)
