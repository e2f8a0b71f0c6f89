"""Prints what build_wheel makes of versions: versions.py DIR VERSION..."""

import sys

sys.path.insert(0, sys.argv[1])
import build_wheel
from packaging.version import Version

for described in sys.argv[2:]:
    print(Version(build_wheel.python_version(described)))
