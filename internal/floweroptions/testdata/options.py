"""Print the options that Flower itself reads from the environment, flowerconfig.py and the command line, as JSON."""
import json
import sys

from flower.command import apply_env_options, apply_options
from flower.options import options

apply_env_options()
apply_options("flower", sys.argv[1:])
print(json.dumps({k: v for k, v in options.as_dict().items() if isinstance(v, (str, int, float, list, type(None)))}))
