"""Why a compiled graph was not in the cache: a line of the log for each compilation, with what differs from the nearest one known.

``TORCH_LOGS="torch_tpu._compile"`` shows it (level INFO). Next to the executables lies ``graphs.jsonl``: a line of digests for
each graph that was compiled, so that a later process can say what has changed since.
"""
import hashlib
import json
import logging
import os

from .. import _C

log = logging.getLogger("torch_tpu._compile.cache")
FILE, LIMIT = "graphs.jsonl", 4 << 20  # bytes; a file that outgrows them begins anew


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parts(gm, bindings, options, device):
    """name -> digest (or short text) of everything that decides which executable a graph gets."""
    places = [n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"]
    inputs = [f"{v.dtype}{tuple(v.shape)}{tuple(v.stride())}" if hasattr(v, "stride") else str(v) for v in places]
    found = {"graph": _digest(gm.code), "sizes of the inputs": _digest(str(inputs)), "symbols": str(sorted(map(str, bindings.items()))),
             "options": str(options), "device": str(device), "float32 precision": str(_C.precision_get())}
    for line in _C.runtime_info("environment").splitlines():
        name, _, value = line.partition(" ")
        found[name] = value if len(value) < 80 else _digest(value)
    return found


def _known(path):
    try:
        with open(path) as f:
            lines = f.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            pass  # torn
    return [r for r in found if isinstance(r, dict)]


def reason(mine, known):
    """In words, why nothing of |known| (dicts as `parts` makes them) was right for |mine|."""
    same = [r for r in known if r.get("graph") == mine["graph"]]
    if not same:
        return "this graph has not been compiled with this cache before"
    names = sorted({n for r in same for n in r} | set(mine))

    def differing(r):
        return [n for n in names if r.get(n) != mine.get(n)]

    nearest = min(reversed(same), key=lambda r: len(differing(r)))
    different = differing(nearest)
    if not different:
        return "it was compiled before with everything the same, but its executable is gone from the cache or was refused"
    return "; ".join(f"{n}: {nearest.get(n)} before, {mine.get(n)} now" for n in different)


def compiled(mine, seconds):
    """To be called when a graph with the parts |mine| was compiled rather than found."""
    directory = _C.runtime_info("cache_dir")
    path = os.path.join(directory, FILE) if directory else None
    if log.isEnabledFor(logging.INFO):
        why = reason(mine, _known(path)) if path else "there is no cache on disk"
        log.info("torch.compile(backend='tpu'): compiled a graph in %.2f s: %s", seconds, why)
    if path is None:
        return
    try:
        with open(path, "w" if os.path.exists(path) and os.path.getsize(path) > LIMIT else "a") as f:
            f.write(json.dumps(mine) + "\n")
    except OSError as e:
        log.debug("%s: %s", path, e)  # a cache must never stop a program
