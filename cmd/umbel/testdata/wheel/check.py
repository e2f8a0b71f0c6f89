"""Checks a wheel by the rules of PyPI, and prints its tags: check.py WHEEL."""

import base64
import csv
import hashlib
import json
import pathlib
import sys
import zipfile

from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

path = pathlib.Path(sys.argv[1])
name, version, build, tags = parse_wheel_filename(path.name)
wheel = zipfile.ZipFile(path)
info = f"umbel-{version}.dist-info"
files = set(wheel.namelist())
assert len(files) == len(wheel.namelist()), "a file is there twice"

metadata = Metadata.from_email(wheel.read(f"{info}/METADATA"), validate=True)
assert (metadata.name, metadata.version) == (name, version)
assert all(r.marker and r.marker.evaluate({"extra": "celery"}) and not r.marker.evaluate({"extra": ""}) for r in metadata.requires_dist)
for file in metadata.license_files:
    assert wheel.read(f"{info}/licenses/{file}").strip(), f"{file} is empty"

record = {row[0]: row[1:] for row in csv.reader(wheel.read(f"{info}/RECORD").decode().splitlines())}
assert set(record) == files, set(record) ^ files
for file, (digest, size) in record.items():
    if file != f"{info}/RECORD":
        data = wheel.read(file)
        want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert (digest, int(size)) == ("sha256=" + want, len(data)), file

bom = json.loads(wheel.read(f"{info}/sboms/umbel.cdx.json"))
assert bom["bomFormat"] == "CycloneDX" and bom["metadata"]["component"]["version"] == str(version)
modules = {c["name"] for c in bom["components"]}
assert {"go", "modernc.org/sqlite"} <= modules, modules
for module in modules - {"go"}:
    assert any(file.startswith(f"{info}/licenses/{module}/") for file in files), f"{module} has no licence"

lines = wheel.read(f"{info}/WHEEL").decode().splitlines()
assert {f"Tag: {tag}" for tag in tags} == {line for line in lines if line.startswith("Tag:")}
scripts = [file for file in files if ".data/" in file]
assert scripts == [f"umbel-{version}.data/scripts/umbel"], scripts
assert wheel.getinfo(scripts[0]).external_attr >> 16 & 0o111, "the binary cannot be executed"
for file in sorted(files - set(scripts)):
    assert not file.startswith("umbel/") or file.endswith((".py", "/py.typed")), file
print(*sorted(tag.platform for tag in tags))
