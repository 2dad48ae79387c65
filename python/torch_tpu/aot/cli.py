"""``torch-tpu explain``: what a TPU would do with a program, from the shell.

    torch-tpu explain package.module:make --topology v5e,v5p --train --json report.json --html report.html
    torch-tpu explain script.py:make --topology tpu7x:2x2x1

``make`` is called without arguments, with new tensors on the ``meta`` device, and gives the model and what it is called
with: ``(model, args)``, ``(model, args, kwargs)``, or a dict with ``model``, ``args``, ``kwargs``, ``loss``. An object that
is no function is taken as it is. A script without ``:NAME`` is searched for ``make``, then for ``explain``.
"""
import argparse
import contextlib
import importlib
import importlib.util
import os
import sys


def add_arguments(verbs) -> None:
    p = verbs.add_parser("explain", help="what a TPU would do with a program; no TPU is needed", description=__doc__,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("target", help="package.module:NAME or script.py:NAME")
    p.add_argument("--topology", default="v5e:2x2", help="one or more, separated by commas: v5e:2x2, tpu7x:2x2x1, or a chip's name")
    p.add_argument("--mesh", help="share the program out: names and sizes of a mesh's dims, dp=64,tp=8; make is called with the DeviceMesh")
    p.add_argument("--train", action="store_true", help="a whole train step instead of inference")
    p.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd", "none"])
    p.add_argument("--json", metavar="FILE", help="write the report as JSON ('-': to stdout instead of text)")
    p.add_argument("--html", metavar="FILE", help="write the report as a page")
    p.add_argument("--flags", default="", help="compiler flags, xla_flag=value;...")
    p.add_argument("--timeout", type=float, default=1800.0, help="seconds for the compiler, for each topology")
    p.add_argument("--real", action="store_true", help="do not make the model on the meta device")
    p.set_defaults(run=run)


class Usage(Exception):
    """The target cannot be found, or is not what explain takes."""


def _load(target: str):
    module, _, name = target.partition(":")
    if module.endswith(".py") or os.path.sep in module:
        if not os.path.exists(module):
            raise Usage(f"there is no file {module}")
        spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(module))[0], module)
        loaded = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, loaded)
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        spec.loader.exec_module(loaded)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            loaded = importlib.import_module(module)
        except ModuleNotFoundError as e:
            raise Usage(f"cannot import {module}: {e}") from None
    names = [name] if name else ["make", "explain"]
    for n in names:
        if hasattr(loaded, n):
            return getattr(loaded, n), n
    raise Usage(f"{module} has no {' or '.join(names)}")


def _mesh(text):
    try:
        return {k: int(v) for k, v in (item.split("=") for item in text.split(","))}
    except ValueError:
        raise Usage(f"--mesh {text}: dp=64,tp=8 is expected") from None


def _program(target: str, real: bool, mesh) -> dict:
    import torch

    from .sharded import made

    found, name = _load(target)
    if mesh:
        if not callable(found):
            raise Usage(f"with --mesh, {name} is called with a DeviceMesh; it is {type(found).__name__}")
        return {"model": found, "args": (), "mesh": mesh}
    if callable(found) and not isinstance(found, torch.nn.Module):
        with contextlib.nullcontext() if real else torch.device("meta"):
            found = found()
    if isinstance(found, torch.nn.Module):
        raise Usage(f"{name} gives a model but not what it is called with: give (model, args)")
    try:
        return made(found)
    except TypeError as e:
        raise Usage(f"{name}: {e}") from None


def run(options) -> int:
    from . import CompilerDied, CompilerMissing, compile

    try:
        p = _program(options.target, options.real, _mesh(options.mesh) if options.mesh else None)
        report = compile(p["model"], p["args"], p.get("kwargs"), topology=options.topology.split(","), mesh=p.get("mesh"), train=options.train,
                         loss=p.get("loss"), optimizer=None if options.optimizer == "none" else options.optimizer,
                         flags=options.flags, timeout=options.timeout)
    except (Usage, CompilerMissing, CompilerDied, ValueError) as e:
        print(f"torch-tpu explain: {e}", file=sys.stderr)
        return 2
    if options.json != "-":
        print(report.text())
    else:
        print(report.json())
    for path, text in ((options.json, report.json), (options.html, report.html)):
        if path and path != "-":
            with open(path, "w") as f:
                f.write(text())
    return 0 if report.compiles else 1
