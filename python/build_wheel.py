"""Builds the wheels of Umbel: the static binary as a script, and the package umbel beside it.

    build_wheel.py [--version VERSION] [--out DIR] [PLATFORM ...]

A PLATFORM is one of Go, such as linux/arm64; without any, wheels for all of them are built. VERSION is what git describe
prints. Nothing is downloaded but modules that Go lacks. The same commit gives the same bytes, with the same Go and Python.
As the build backend of pyproject.toml, it builds the wheel of the platform that it runs on.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import uuid
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

PYTHON = pathlib.Path(__file__).resolve().parent
ROOT = PYTHON.parent

# A static binary needs no libc, so one wheel is for glibc and musl. Go 1.26 needs macOS 12.
PLATFORMS = {
    "linux/amd64": ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_2_x86_64"],
    "linux/arm64": ["manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_2_aarch64"],
    "darwin/amd64": ["macosx_12_0_x86_64"],
    "darwin/arm64": ["macosx_12_0_arm64"],
    "windows/amd64": ["win_amd64"],
    "windows/arm64": ["win_arm64"],
}

DESCRIBED = re.compile(r"v?(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?(?:-(\d+)-g([0-9a-f]+))?(-dirty)?")
STAGES = {"alpha": "a", "beta": "b", "rc": "rc", None: ""}


def python_version(described: str) -> str:
    """Turns what git describe prints into a version of PEP 440."""
    if m := DESCRIBED.fullmatch(described):
        release, stage, number, commits, commit, dirty = m.groups()
        version = release + STAGES[stage] + (number or "")
        local = [word for word in (commit and "g" + commit, dirty and "dirty") if word]
        return version + (f".post{commits}" if commits else "") + ("+" + ".".join(local) if local else "")
    local_version = re.sub(r"[^a-z0-9]+", ".", described.lower()).strip(".")
    return "0.0.0.dev0" + ("+g" + local_version if local_version else "")


def go(*args: str, platform: str = "") -> str:
    env = dict(os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local", GOFLAGS="")
    if platform:
        env["GOOS"], env["GOARCH"] = platform.split("/")
    return subprocess.run(["go", *args], cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build_binary(platform: str, described: str, out: pathlib.Path) -> None:
    ldflags = f"-s -w -X main.version={described}"
    go("build", "-trimpath", "-ldflags", ldflags, "-o", str(out), "./cmd/umbel", platform=platform)


def licences(platform: str) -> Iterator[tuple[str, bytes]]:
    """Yields the licences of all that is in the binary, with their paths below licenses/."""
    yield "LICENSE", (ROOT / "LICENSE").read_bytes()
    for path in sorted(ROOT.glob("static/*/LICENSE")):
        yield path.relative_to(ROOT).as_posix(), path.read_bytes()
    yield "go/LICENSE", (pathlib.Path(go("env", "GOROOT")) / "LICENSE").read_bytes()
    listing = go("list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/umbel", platform=platform)
    for line in sorted(set(listing.splitlines()) - {""}):
        module, directory = line.split("\t")
        named = re.compile(r"(?i)(licen[cs]e|copying|notice|patents)(?!.*\.go$)")
        found = [p for p in sorted(pathlib.Path(directory).iterdir()) if named.match(p.name) and p.is_file()]
        if not found:
            raise SystemExit(f"build_wheel: {module} has no licence in {directory}")
        for path in found:
            yield f"{module}/{path.name}", path.read_bytes()


def sbom(version: str, binary: pathlib.Path) -> str:
    """Lists the modules that a binary says it was built from, as CycloneDX."""
    info = json.loads(go("version", "-m", "-json", str(binary)))
    main = {"type": "application", "bom-ref": "umbel", "name": "umbel", "version": version, "purl": f"pkg:pypi/umbel@{quote(version)}"}
    components = [{"type": "platform", "bom-ref": "go", "name": "go", "version": info["GoVersion"], "purl": f"pkg:golang/std@{info['GoVersion'][2:]}"}]
    for module in info.get("Deps") or []:
        module = module.get("Replace") or module
        purl = f"pkg:golang/{module['Path'].lower()}@{module['Version']}"
        components.append({"type": "library", "bom-ref": purl, "name": module["Path"], "version": module["Version"], "purl": purl})
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": components,
        "dependencies": [{"ref": "umbel", "dependsOn": [c["bom-ref"] for c in components]}],
    }
    bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom)).urn
    return json.dumps(bom, indent=2) + "\n"


def metadata(project: dict[str, Any], version: str, licence_files: list[str]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {path}" for path in licence_files),
        *(f"Classifier: {c}" for c in project["classifiers"]),
        *(f"Project-URL: {name}, {url}" for name, url in project["urls"].items()),
        f"Requires-Python: {project['requires-python']}",
    ]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {r}; extra == "{extra}"' for r in requirements]
    lines += ["Description-Content-Type: text/markdown", "", (PYTHON / project["readme"]).read_text("utf-8")]
    return "\n".join(lines)


def entry_points(project: dict[str, Any]) -> str:
    groups = project["entry-points"].items()
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {ref}\n" for name, ref in points.items()) for group, points in groups)


class Wheel:
    """A wheel that is being written. All its files have the same date."""

    def __init__(self, path: pathlib.Path, dist_info: str) -> None:
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.dist_info = dist_info
        self.record: list[list[str]] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        self._write(name, data, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append([name, "sha256=" + digest, str(len(data))])

    def _write(self, name: str, data: bytes, mode: int) -> None:
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        info.create_system, info.external_attr = 3, (0o100000 | mode) << 16  # Unix, wherever it is built
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)

    def close(self) -> None:
        name = f"{self.dist_info}/RECORD"
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*self.record, [name, "", ""]])
        self._write(name, text.getvalue().encode(), 0o644)
        self.zip.close()


def build(platform: str, described: str, out: pathlib.Path) -> pathlib.Path:
    """Builds the wheel of a platform in the directory out, and returns its path."""
    project = tomllib.loads((PYTHON / "pyproject.toml").read_text("utf-8"))["project"]
    version = python_version(described)
    name, tags = f"{project['name']}-{version}", PLATFORMS[platform]
    path = out / f"{name}-py3-none-{'.'.join(tags)}.whl"
    dist_info = f"{name}.dist-info"
    with tempfile.TemporaryDirectory() as directory:
        binary = pathlib.Path(directory) / ("umbel.exe" if platform.startswith("windows/") else "umbel")
        build_binary(platform, described, binary)
        content, components = binary.read_bytes(), sbom(version, binary)
    out.mkdir(parents=True, exist_ok=True)
    wheel = Wheel(path, dist_info)
    for source in sorted((PYTHON / "umbel").iterdir()):
        if source.suffix in (".py", ".typed"):
            wheel.add(f"umbel/{source.name}", source.read_bytes())
    wheel.add(f"{name}.data/scripts/{binary.name}", content, 0o755)
    files = list(licences(platform))
    for licence, text in files:
        wheel.add(f"{dist_info}/licenses/{licence}", text)
    wheel.add(f"{dist_info}/sboms/umbel.cdx.json", components.encode())
    wheel.add(f"{dist_info}/METADATA", metadata(project, version, [licence for licence, _ in files]).encode())
    wheel.add(f"{dist_info}/entry_points.txt", entry_points(project).encode())
    tag_lines = "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    wheel.add(f"{dist_info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: umbel build_wheel\nRoot-Is-Purelib: false\n{tag_lines}".encode())
    wheel.close()
    return path


def describe() -> str:
    """Returns what git says of this commit, or nothing outside of a checkout."""
    done = subprocess.run(["git", "describe", "--tags", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip()


def native() -> str:
    return go("env", "GOHOSTOS") + "/" + go("env", "GOHOSTARCH")


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Is the hook of PEP 517."""
    return build(native(), describe(), pathlib.Path(wheel_directory)).name


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the wheels of Umbel.")
    parser.add_argument("--version", default=describe(), help="what git describe prints")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=", ".join(PLATFORMS) + ", or native")
    args = parser.parse_args()
    platforms = [native() if p == "native" else p for p in args.platforms or PLATFORMS]
    if unknown := set(platforms) - set(PLATFORMS):
        parser.error(f"there is no wheel for {', '.join(sorted(unknown))}: the platforms are {', '.join(PLATFORMS)}")
    for platform in platforms:
        path = build(platform, args.version, args.out)
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
