"""Answers for Flower's search: each line is a query or a query with tasks, each answer its tree, or what is wrong with it,
and the ids of the tasks that it finds."""
import json
import sys
from types import SimpleNamespace

from flower.utils import search


def tree(e):
    if isinstance(e, search.MatchAll):
        return None
    if isinstance(e, search.Term):
        return [e.field or "", e.value]
    return {"and" if isinstance(e, search.And) else "or": [tree(child) for child in e.children]}


for line in sys.stdin:
    asked = json.loads(line)
    answer = {"tree": None, "error": "", "found": []}
    try:
        answer["tree"] = tree(search.parse_query(asked["query"]))
        engine = search.TaskSearchEngine()
        engine.rebuild((t["uuid"], SimpleNamespace(**t)) for t in asked["tasks"] or [])
        answer["found"] = sorted(engine.matching_ids(asked["query"]))
    except search.QuerySyntaxError as error:
        answer["error"] = str(error)
    print(json.dumps(answer), flush=True)
