"""Reads calls as lines of JSON, and writes their fingerprints, or a ! where a path is wrong."""

import json
import sys

from umbel._fingerprint import Fingerprinter

for line in sys.stdin.buffer:
    call = json.loads(line)
    try:
        f = Fingerprinter(call["only"], call["without"], call["precision"])
        print(f.call(call["task"], call["args"], call["kwargs"]))
    except ValueError:
        print("!")
