"""Reads lines of a number of decimals (or -) and JSON, and writes what the JSON is in canonical form, or a !."""

import json
import sys

# Go reads integers of any length, and so does Python without its limit.
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


def rounded(value, decimals):
    if isinstance(value, float):
        return round(value, decimals)
    if isinstance(value, list):
        return [rounded(v, decimals) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v, decimals) for k, v in value.items()}
    return value


for line in sys.stdin.buffer:
    decimals, _, text = line.rstrip(b"\n").partition(b" ")
    try:
        # What bytes are decoded with, but always from UTF-8: json.loads guesses other encodings from zeros.
        value = json.loads(text.decode("utf-8", "surrogatepass"))
        if decimals != b"-":
            value = rounded(value, int(decimals))
        print(json.dumps(value, sort_keys=True, separators=(",", ":")))
    except (ValueError, RecursionError):
        print("!")
