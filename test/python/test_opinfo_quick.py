"""A selection of PyTorch's operator database in f32, forward, with no help from the CPU."""
import json
import os
import subprocess
import sys

import pytest

NAMES = ("add addmm amax argmax bmm cat clamp cumsum diagonal div embedding eq exp expand flip gather index_add index_put index_select log "
         "log_softmax logsumexp masked_fill masked_select matmul max.binary mean mul nn.functional.conv2d nn.functional.cross_entropy "
         "nn.functional.gelu nn.functional.layer_norm nn.functional.linear nn.functional.max_pool2d nn.functional.pad.constant "
         "nn.functional.relu nn.functional.scaled_dot_product_attention permute pow prod repeat reshape roll rsqrt scatter scatter_add "
         "sigmoid softmax sort stack sub sum tanh topk transpose tril unfold var where").split()


@pytest.mark.slow
def test_selection(tmp_path):
    here = os.path.dirname(os.path.abspath(__file__))
    out = tmp_path / "results.jsonl"
    pattern = "^(" + "|".join(n.replace(".", r"\.") for n in NAMES) + ")$"
    p = subprocess.run([sys.executable, os.path.join(here, "opinfo_driver.py"), "--ops", pattern, "--dtypes", "float32", "--kinds", "forward",
                        "--out", str(out)], env={**os.environ, "TORCH_TPU_FALLBACK": "error"}, capture_output=True, text=True, timeout=900)
    assert out.exists(), p.stderr[-2000:]
    results = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(results) >= 50
    bad = [f"{r['op']}: {r['verdict']} {r['why']} {r['fallback']}" for r in results if r["verdict"] not in ("ok", "nearer", "loose") or r["fallback"]]
    assert not bad, "\n".join(bad)
