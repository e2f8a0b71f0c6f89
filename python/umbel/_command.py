"""celery -A proj umbel: the program umbel with the settings of an app."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Any

import click
from celery.bin.base import CeleryCommand

from umbel import _settings


@click.command(
    "umbel",
    cls=CeleryCommand,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
    short_help="Live dashboard of this app's cluster.",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def umbel(ctx: click.Context, /, args: tuple[str, ...], **_: Any) -> None:
    """Runs umbel with ARGS: "celery umbel --help" lists them. It takes the broker, the result backend, TLS and transport options from
    the app, unless an option or a variable of umbel says otherwise."""
    try:
        found = _settings.environment(ctx.obj.app, args, os.environ)
    except _settings.Unsupported as error:
        raise click.ClickException(str(error)) from None
    for warning in found.warnings:
        click.echo(f"umbel: {warning}", err=True)
    command = [_program(), *args]
    variables = {**found.variables, **os.environ}
    sys.stdout.flush()
    if os.name == "nt":  # where exec would leave the shell behind
        sys.exit(subprocess.call(command, env=variables))
    os.execve(command[0], command, variables)


def _program() -> str:
    """Returns the path of the binary that came with this package."""
    name = "umbel.exe" if os.name == "nt" else "umbel"
    places = []
    try:
        places = [str(f.locate()) for f in importlib.metadata.files("umbel") or () if f.name == name]
    except importlib.metadata.PackageNotFoundError:
        pass
    for path in [*places, os.path.join(sysconfig.get_path("scripts"), name), shutil.which(name)]:
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise click.ClickException("the program umbel is not installed: pip install --force-reinstall umbel")
