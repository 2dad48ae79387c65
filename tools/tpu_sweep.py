"""Does every row of the op table compile for TPUs? Programs of OpInfo's samples are lowered for a TPU while they run on
this machine's plugin, and each different one is then compiled by libtpu in a process that may die. No TPU is needed.

    ./dev tpu-sweep                          collect (build/tpu-sweep/programs), compile, write docs/reference/tpu-lowerings.md
    ./dev tpu-sweep --ops 'sum|mul' --topology v5e:2x2
    ./dev tpu-sweep --per-row 1              at most so many programs of a row (default 2), the smallest first

Resumable: collected entries and compiled programs are not done again (--fresh starts over).
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "tpu-sweep")
TOPOLOGIES = ("v5e:2x2", "tpu7x:2x2x1")


# ---------------------------------------------------------------- collecting
def collect_here(names, n_samples):
    """In a process of its own: runs some samples of each entry; what fails is the operator tests' business."""
    import warnings

    warnings.filterwarnings("ignore")
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils._pytree import tree_leaves, tree_map_only

    torch.set_num_threads(1)
    for op in op_db:
        key = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if key not in names:
            continue
        print("BEGIN", key, flush=True)
        for dtype in (torch.float32, torch.int64) if n_samples > 2 else (torch.float32,):
            if dtype not in op.dtypes:
                continue
            try:
                samples = list(op.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point and op.supports_autograd))
            except Exception:  # noqa: BLE001
                continue
            for s in samples[:n_samples]:
                try:
                    move = lambda t: t.detach().to("tpu").requires_grad_(t.requires_grad)  # noqa: E731
                    x, args, kwargs = tree_map_only(torch.Tensor, move, (s.input, s.args, s.kwargs))
                    out = op(x, *args, **kwargs)
                    grads = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor) and t.requires_grad]
                    if grads:
                        sum(t.abs().sum() for t in grads).backward()
                    torch.tpu.synchronize()
                except Exception:  # noqa: BLE001
                    pass
        print("END", key, flush=True)


def collect(options, folder):
    from torch.testing._internal.common_methods_invocations import op_db

    done_path = os.path.join(folder, "collected")
    done = set(open(done_path).read().split("\n")) if os.path.exists(done_path) else set()
    keys = [f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name for op in op_db]
    left = [k for k in dict.fromkeys(keys) if k not in done and re.search(options.ops, k)]
    random.Random(0).shuffle(left)  # a sweep that is stopped early has seen a bit of everything
    programs = os.path.join(folder, "programs")
    env = {**os.environ, "TORCH_TPU_DUMP": programs, "TORCH_TPU_LOWER_FOR": "tpu", "TORCH_TPU_FALLBACK": "off", "OMP_NUM_THREADS": "1"}
    while left and time.monotonic() < options.end:
        batch, begun = left[:25], set()
        p = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--collect-here", ",".join(batch),
                              "--samples", str(options.samples)], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            out, _ = p.communicate(timeout=900)
        except subprocess.TimeoutExpired:
            p.kill()
            out, _ = p.communicate()
        for line in out.splitlines():
            if line.startswith(("BEGIN ", "END ")):
                begun.add(line.split(" ", 1)[1])
        begun = begun or set(batch)  # a process that dies with an entry is not given it again
        with open(done_path, "a") as f:
            f.writelines(k + "\n" for k in batch if k in begun)
        left = [k for k in left if k not in begun]
        print(f"collected {len(os.listdir(programs))} programs, {len(left)} entries left", flush=True)


# ---------------------------------------------------------------- compiling
def choose(folder, per_row):
    """{row: [files]}: for each row the smallest programs, of different argument types where there are."""
    rows = collections.defaultdict(list)
    programs = os.path.join(folder, "programs")
    for name in os.listdir(programs):
        path = os.path.join(programs, name)
        with open(path) as f:
            row = f.readline()[3:].strip()
            f.readline()
            kinds = re.findall(r"x?([a-z]+\d+|complex<f\d+>)>", f.readline().partition(") ->")[0])
        rows[row].append((tuple(kinds), os.path.getsize(path), name))
    out = {}
    for row, items in rows.items():
        items.sort(key=lambda x: x[1])
        seen, first, rest = set(), [], []
        for kinds, _, name in items:
            (rest if kinds in seen else first).append(name)
            seen.add(kinds)
        out[row] = (first + rest)[:per_row]
    return out


def compile_all(options, folder):
    from torch_tpu import aot

    path = os.path.join(folder, "results.jsonl")
    results = {}
    if os.path.exists(path):
        for line in open(path):
            r = json.loads(line)
            results[r["program"], r["topology"]] = r
    chosen = choose(folder, options.per_row)
    jobs = [(row, name, t) for row, names in sorted(chosen.items()) for name in names for t in options.topology if (name, t) not in results]
    print(f"{len(chosen)} rows, {len(jobs)} compilations left", flush=True)
    with aot.Compiler(timeout=options.timeout) as compiler, open(path, "a") as out:
        for i, (row, name, topology) in enumerate(jobs):
            if time.monotonic() > options.end:
                print(f"stopped by --seconds; {len(jobs) - i} left", flush=True)
                break
            with open(os.path.join(folder, "programs", name)) as f:
                text = f.read()
            r = {"row": row, "program": name, "topology": topology, "error": None}
            try:
                compiler.compile(text, topology, optimized=False)
            except (aot.CompileRefused, aot.CompilerDied) as e:
                r["error"] = f"{type(e).__name__}: {e}"[:600]
                print(f"{row} for {topology}: {r['error'][:300]}", flush=True)
            results[name, topology] = r
            out.write(json.dumps(r) + "\n")
            out.flush()
    return [r for r in results.values() if r["program"] in set(sum(chosen.values(), []))]


def publish(results, path, folder):
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for r in results:
        rows[r["row"]][r["topology"]].append(r["error"])
    topologies = sorted({r["topology"] for r in results})
    bad = {row: t for row, t in rows.items() if any(e for errors in t.values() for e in errors)}
    lines = ["# Lowerings compiled for TPUs", "",
             "Made by `./dev tpu-sweep` with libtpu, without a TPU: programs of PyTorch's operator samples (OpInfo), lowered for a",
             "TPU, a few of each operator, each compiled for the chips named. Compiled, not run.", "",
             f"{len(open(os.path.join(folder, 'collected')).readlines())} of OpInfo's entries were collected so far.", "",
             "| topology | operators tried | programs | operators refused |", "| --- | --- | --- | --- |"]
    for t in topologies:
        tried = [row for row in rows if rows[row][t]]
        refused = [row for row in tried if any(rows[row][t])]
        lines.append(f"| {t} | {len(tried)} | {sum(len(rows[row][t]) for row in tried)} | {len(refused)} |")
    lines += ["", "## Refused", ""]
    for row in sorted(bad):
        for t in topologies:
            for e in sorted({e for e in rows[row][t] if e}):
                lines.append(f"- `{row}` for {t}: {' '.join(e.split())[:300]}")
    if not bad:
        lines.append("None.")
    lines += ["", "## Compiled", "", ", ".join(f"`{row}`" for row in sorted(rows) if row not in bad), ""]
    with open(path, "w") as f:
        f.write("\n".join(lines))
    print(f"{path}: {len(rows)} operators, {len(bad)} refused somewhere")
    return len(bad)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ops", default="", help="only OpInfo entries that match this expression")
    p.add_argument("--topology", action="append", help=f"may be given again (default {', '.join(TOPOLOGIES)})")
    p.add_argument("--samples", type=int, default=6, help="samples of each entry and dtype (default 6)")
    p.add_argument("--per-row", type=int, default=2)
    p.add_argument("--seconds", type=float, default=1e9, help="stop after so long; the next call goes on")
    p.add_argument("--timeout", type=float, default=300, help="seconds for one program")
    p.add_argument("--collected", action="store_true", help="compile what was collected before, and collect nothing")
    p.add_argument("--folder", default=FOLDER)
    p.add_argument("--fresh", action="store_true")
    p.add_argument("--no-doc", action="store_true", help="do not write docs/reference/tpu-lowerings.md")
    p.add_argument("--collect-here", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.collect_here is not None:
        collect_here(set(options.collect_here.split(",")), options.samples)
        return 0
    from torch_tpu import aot

    if not aot.available():
        print("compiling for TPUs needs libtpu, no TPU: pip install libtpu", file=sys.stderr)
        return 2
    if options.fresh:
        shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(os.path.join(options.folder, "programs"), exist_ok=True)
    options.topology = options.topology or list(TOPOLOGIES)
    start = time.monotonic()
    options.end = start + options.seconds / 2  # half for collecting
    if not options.collected:
        collect(options, options.folder)
    options.end = start + options.seconds
    results = compile_all(options, options.folder)
    if not options.no_doc:
        publish(results, os.path.join(ROOT, "docs", "reference", "tpu-lowerings.md"), options.folder)
    return 1 if any(r["error"] for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
