"""Answer each line, a JSON array, with Celery's saferepr of it as positional arguments, and what Python reads in that."""
import ast
import json
import sys

from celery.utils.saferepr import saferepr

for line in sys.stdin:
    text = saferepr(tuple(json.loads(line)), 1024, 3)
    try:
        read = json.dumps(ast.literal_eval(text))
    except (SyntaxError, ValueError, TypeError):
        read = None
    print(json.dumps({"repr": text, "read": read}))
