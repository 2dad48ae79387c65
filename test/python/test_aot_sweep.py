"""A small part of ./dev tpu-sweep: what OpInfo's samples lower to compiles for a TPU."""
import json
import os
import subprocess
import sys

import pytest

from torch_tpu import aot

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.mark.skipif(not aot.available(), reason="libtpu is not installed: pip install libtpu")
def test_a_part_of_the_sweep(tmp_path):
    args = ["--ops", "^(mul|sum|index_select)$", "--samples", "2", "--per-row", "1", "--topology", "v5e:2x2", "--folder", str(tmp_path), "--no-doc"]
    p = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "tpu_sweep.py"), *args], capture_output=True, text=True, timeout=600)
    assert p.returncode == 0, p.stdout + p.stderr
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    rows = {r["row"] for r in results}
    assert {"aten::mul.Tensor", "aten::sum"} <= rows and all(r["error"] is None for r in results)
    again = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "tpu_sweep.py"), *args], capture_output=True, text=True, timeout=600)
    assert "0 compilations left" in again.stdout
