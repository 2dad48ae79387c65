"""A report as one page: no script, no style sheet, no picture from elsewhere."""
from html import escape

from .report import _products, count, seconds, size

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .4rem}p{margin:.3rem 0}
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}code{font:13px ui-monospace,monospace}
.no{color:#b42318;font-weight:600}.yes{color:#12703a;font-weight:600}.care{color:#8a5a00}svg{max-width:100%;height:auto}
@media(prefers-color-scheme:dark){body{background:#14171a;color:#dfe3e8}td,th{border-color:#333}svg text{fill:#dfe3e8}}
"""
_KINDS = (("arguments", "#3b6fd4"), ("outputs", "#2a9d8f"), ("temporaries", "#e07a3f"), ("code", "#8e6bbf"))


def _table(head, rows, numbers=()):
    """|rows| are of escaped text; columns in |numbers| are set flush right."""
    out = ["<table><tr>", *[f"<th>{escape(h)}</th>" for h in head], "</tr>"]
    for row in rows:
        out += ["<tr>", *[f'<td{" class=n" if i in numbers else ""}>{c}</td>' for i, c in enumerate(row)], "</tr>"]
    return "".join(out) + "</table>"


def _code(text):
    return f"<code>{escape(text)}</code>" if text else ""


def _hbm(h):
    """The device's memory as one bar: what the program fills, by kind."""
    width, x, parts = 900, 0.0, []
    total = max(h["device"], h.get("needed") or 0)
    for kind, colour in _KINDS:
        n = h.get(kind) or 0
        if kind == "outputs":
            n -= h.get("aliased") or 0
        w = max(0.0, width * n / total)
        parts.append(f'<rect x="{x:.1f}" y="0" width="{w:.1f}" height="26" fill="{colour}"><title>{kind} {size(n)}</title></rect>')
        x += w
    if not h.get("total") and h.get("needed"):
        parts = [f'<rect x="0" y="0" width="{width * h["needed"] / total:.1f}" height="26" fill="#b42318"><title>needed {size(h["needed"])}</title></rect>']
    edge = width * h["device"] / total
    parts.append(f'<rect x="0" y="0" width="{edge:.1f}" height="26" fill="none" stroke="#888" stroke-width="2"/>')
    legend, x = [], 0
    for kind, colour in _KINDS:
        words = f"{kind} {size(h.get(kind))}"
        legend.append(f'<rect x="{x}" y="36" width="12" height="12" fill="{colour}"/><text x="{x + 17}" y="47" font-size="13">{words}</text>')
        x += 225
    return (f'<svg class="hbm" viewBox="-2 -2 {width + 4} 56" width="{width}" role="img" aria-label="memory by kind">'
            + "".join(parts + (legend if h.get("total") else [])) + "</svg>")


def _memory_line(points):
    """Bytes of values beside the arguments, over program order."""
    if len(points) < 2 or not max(points):
        return ""
    w, h, top = 900, 160, max(points)
    at = [f"{i * w / (len(points) - 1):.1f},{h - p * (h - 10) / top:.1f}" for i, p in enumerate(points)]
    return (f'<svg class="line" viewBox="0 -16 {w} {h + 34}" width="{w}" role="img" aria-label="memory over program order">'
            f'<polygon points="0,{h} {" ".join(at)} {w},{h}" fill="#e07a3f" fill-opacity=".35" stroke="#e07a3f"/>'
            f'<text x="4" y="-3" font-size="13">{size(top)}</text><text x="0" y="{h + 15}" font-size="13">first operation</text>'
            f'<text x="{w}" y="{h + 15}" font-size="13" text-anchor="end">last</text></svg>')


def _bars(items, unit, kind="bars"):
    """Horizontal bars of (words, number)."""
    if not items:
        return ""
    top, row, parts = max(n for _, n in items) or 1, 24, []
    for i, (words, n) in enumerate(items):
        y = i * row
        parts.append(f'<rect x="0" y="{y}" width="{max(1, 260 * n / top):.1f}" height="17" fill="#3b6fd4"/>'
                     f'<text x="268" y="{y + 13}" font-size="12">{escape(unit(n))}  {escape(words[:110])}</text>')
    return f'<svg class="{kind}" viewBox="0 0 900 {row * len(items)}" width="900" role="img" aria-label="largest items">{"".join(parts)}</svg>'


def _target(t, p):
    h, out = t["hbm"], [f"<h2>{escape(t['topology'])} <small>{escape(t['kind'] or t['chip'])}, {t.get('used', 1)} of {t['devices']} devices, "
                        f"{size(t['hbm']['device'])} of HBM each</small></h2>"]
    out.append(_hbm(h))
    if not t["compiles"]:
        words = f"does not fit: needs {size(h['needed'])} of {size(h['available'])}" if h.get("needed") else "refused"
        out.append(f"<p class=no>{words}</p><pre>{escape((t['error'] or '')[:3000])}</pre>")
        return "".join(out)
    r = t["roofline"]
    rows = [("HBM", f"{size(h['total'])} ({100 * h['total'] / h['device']:.1f} %), of which {size(h['aliased'])} of results take their arguments' place"),
            ("work", f"{count(t['flops'], 'FLOP')}{_products(t, p)}, {size(t['bytes'])} moved" + (f", {t['intensity']:.1f} FLOP/byte" if t["intensity"] else "")),
            ("XLA's estimate", seconds(t["seconds"]))]
    if r:
        rows.append(("roofline", f"{seconds(r['seconds'])}, {r['bound']} bound; XLA's estimate is at {100 * r['share']:.0f} % of it; "
                                 f"{100 * r['mfu']:.1f} % of peak bf16 FLOP/s"))
    out.append(_table(("", ""), [(k, escape(v)) for k, v in rows]))
    out += [f"<p class=care>{escape(w)}</p>" for w in t["untrusted"]]
    if t["collectives"]:
        out.append(_table(("collective", "shape", "bytes", "times", "line"), [
            (escape(c["op"]), _code(c["shape"]), size(c["bytes"]), str(c["count"]), _code(c["line"])) for c in t["collectives"]], (2, 3)))
    picture = _memory_line(t["memory_line"])
    if picture:
        out.append("<p>Values in HBM beside the arguments, in the order the chip runs the program (fusions and loops as one step)</p>" + picture)
    if t["peak"]:
        out.append("<p>Largest of them where it is fullest</p>" + _table(("bytes", "shape", "made by", "line"), [
            (size(v["bytes"]), _code(v["shape"]), escape(v["op"]), _code(v["line"])) for v in t["peak"][:12]], (0,)))
    if t.get("top"):
        out.append("<p>Operations that move the most bytes</p>" + _bars(
            [(f"{v['name']}  {v['line'] or ''}", v["bytes"]) for v in t["top"][:15] if v["bytes"]], size, "top"))
    return "".join(out)


def _summary(targets):
    head = ("", *[t["topology"] for t in targets])
    mark = {True: '<span class="yes">fits</span>', False: '<span class="no">no</span>'}
    cells = (("", lambda t: mark[t["compiles"]]), ("HBM needed", lambda t: size(t["hbm"].get("needed"))),
             ("HBM of a device", lambda t: size(t["hbm"]["device"])), ("XLA's time", lambda t: seconds(t["seconds"])),
             ("of peak FLOP/s", lambda t: f"{100 * t['roofline']['mfu']:.1f} %" if t["roofline"] else "?"))
    return _table(head, [(escape(name), *[f(t) for t in targets]) for name, f in cells], range(1, len(head)))


def page(data: dict) -> str:
    """The page of a report's data."""
    from .report import Report

    p = data["program"]
    what = "one train step" if p["train"] else "inference"
    out = [f"<h1>{escape(p['name'])}: {what}</h1>", f"<p>{escape(Report(data).verdict())}</p>"]
    if p.get("mesh"):
        out.append("<p>Shared out over " + escape(" x ".join(f"{k}={v}" for k, v in p["mesh"].items())) + "; figures are one device's</p>")
    if p.get("where"):
        out.append(f"<p>at {_code(p['where'])}</p>")
    if p.get("inputs"):
        out.append(f"<p>{count(p['parameters'])} parameters; " + ", ".join(f"{escape(k)} {size(v)}" for k, v in p["inputs"].items()) + "</p>")
    if data["targets"]:
        out.append(_summary(data["targets"]))
    out += [_target(t, p) for t in data["targets"]]
    if p.get("flops_by_line"):
        out.append("<h2>Products and convolutions by line</h2>"
                   + _bars([(v["line"], v["flops"]) for v in p["flops_by_line"][:15]], lambda n: count(n, "FLOP")))
    if p.get("largest"):
        out.append("<h2>Largest values as PyTorch makes them</h2><p>An estimate: the compiler fuses many of them away.</p>" + _table(
            ("bytes", "shape", "operator", "line"),
            [(size(v["bytes"]), _code(v["shape"]), escape(v["name"]), _code(v["line"])) for v in p["largest"]], (0,)))
    sources = sorted({t["source"] for t in data["targets"]})
    if sources:
        out.append("<p><small>Figures of chips: " + ", ".join(escape(s) for s in sources) + "</small></p>")
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(p["name"])}: ahead of time</title>'
            f'<style>{_STYLE}</style></head><body>{"".join(out)}</body></html>\n')
