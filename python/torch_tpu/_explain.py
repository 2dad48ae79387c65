"""What DEFER_AND_FUSE did with the program: where its recorded regions ended, why, and what the cuts cost."""
import json

_WHY = {
    "read": "the host needs a value",
    "sync": "synchronisation",
    "op": "an operation that cannot be recorded",
    "period": "the loop came full circle",
    "limit": "the region was as long as regions get",
    "device": "work for another device",
    "mode": "a strict operation needs a recorded value",
}
_FORMAT = "torch_tpu fusion 1"


class Fusion:
    """A report. ``data``: totals, ``cuts`` (a place each) and ``regions`` (a shape of region each), as plain lists and dicts.

    A cut has ``reason``, ``op``, ``where`` ("file.py:12 in f"), ``count``, ``nodes_before`` and ``nodes_after``: operations
    in the regions that ended there and in those that followed. A region has its ``state``, ``nodes``, how often it was
    ``met`` and ``ran_fused``, ``inputs``, ``results``, how many of them were ``live_results``, buffers ``donated``, the
    ``programs`` it became and the operations ``made_again`` in a later one instead of kept, its ``first`` and ``last`` operation, and the ``cut`` at which it ended last.
    """

    def __init__(self, data: dict):
        self.data = data

    @property
    def hit_rate(self) -> float:
        """Share of the regions run that ran as one fused program; 0.0 when none ran."""
        fused, other = self.data["regions_fused"], self.data["regions_unfused"]
        return fused / (fused + other) if fused + other else 0.0

    def without_read(self, cut: dict) -> int:
        """Operations of the region that would be one, on average, were the cut not there."""
        return round((cut["nodes_before"] + cut["nodes_after"]) / max(cut["count"], 1))

    def save(self, path) -> None:
        with open(path, "w") as f:
            json.dump({"format": _FORMAT, **self.data}, f)

    def text(self, top: int = 12) -> str:
        d = self.data
        regions, cuts = d["regions"], d["cuts"]
        lines = [
            f"{d['recorded']} operations recorded; {d['regions_fused']} regions ran fused, {d['regions_unfused']} operation by operation "
            f"({self.hit_rate:.0%} fused); {d['fused_compiles']} programs compiled, {d['fused_failures']} could not be",
            "",
            "where regions end (times, operations before / after)",
        ]
        for c in sorted(cuts, key=lambda c: -c["nodes_before"])[:top]:
            n = max(c["count"], 1)
            place = c["where"] or "(no Python line)"
            lines.append(f"  {c['count']:>6} x  {c['nodes_before'] / n:6.1f} / {c['nodes_after'] / n:6.1f}  {place}: {_WHY[c['reason']]}"
                         + (f" ({c['op']})" if c["op"] else ""))
            if c["reason"] in ("read", "sync", "op") and c["nodes_after"]:
                lines.append(f"             without it {self.without_read(c)} operations would be one program")
        if len(cuts) > top:
            lines.append(f"  … {len(cuts) - top} more places")
        lines += ["", "regions (times met, fused; operations; results written of all; buffers donated)"]
        for r in sorted(regions, key=lambda r: -r["met"] * r["nodes"])[:top]:
            lines.append(f"  {r['met']:>6} x, {r['ran_fused']:>6} fused  {r['nodes']:>5} operations  {r['live_results']} of {r['results']} results"
                         f"  {r['donated']} of {r['inputs']} inputs donated  {r['state']}"
                         + (f" in {r['programs']} programs, {r['made_again']} operations twice" if r.get("programs", 1) > 1 else ""))
            for end in ("first", "last"):
                lines.append(f"             {end:5} {r[end]['op']} ({r[end]['where'] or 'no Python line'})")
        if len(regions) > top:
            lines.append(f"  … {len(regions) - top} more regions")
        once = sum(r["state"] == "met once" for r in regions)
        if once > 20 and once * 2 > len(regions):
            lines += ["", f"{once} of {len(regions)} regions were met only once: shapes or cuts change from step to step"]
        return "\n".join(lines)

    __str__ = __repr__ = text


def collect() -> Fusion:
    from . import _C

    return Fusion(json.loads(_C.defer_report()))


def load(path) -> Fusion:
    """A saved report. ``ValueError`` when the file is something else."""
    with open(path) as f:
        data = json.load(f)
    if not isinstance(data, dict) or data.pop("format", None) != _FORMAT:
        raise ValueError(f"{path} is no report of torch.tpu.explain_fusion()")
    return Fusion(data)
