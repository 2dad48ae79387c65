"""A selection of PyTorch's databases of modules and optimizers in f32, with no help from the CPU."""
import json
import os
import subprocess
import sys

MODULES = ("BatchNorm2d Conv2d CrossEntropyLoss Embedding FractionalMaxPool3d GRUCell LayerNorm Linear MultiLabelMarginLoss "
           "PReLU Softmax TransformerEncoderLayer").split()


def sweep(tmp_path, driver, *arguments):
    out = tmp_path / "results.jsonl"
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), driver)
    p = subprocess.run([sys.executable, script, *arguments, "--out", str(out)], env={**os.environ, "TORCH_TPU_FALLBACK": "error"},
                       capture_output=True, text=True, timeout=900)
    assert out.exists(), p.stderr[-2000:]
    results = [json.loads(line) for line in out.read_text().splitlines()]
    bad = [f"{r['op']} {r['kind']}: {r['verdict']} {r['why']} {r['fallback']}" for r in results
           if r["verdict"] not in ("ok", "nearer", "loose") or r["fallback"]]
    assert not bad, "\n".join(bad)
    return results


def test_modules(tmp_path):
    results = sweep(tmp_path, "module_driver.py", "--modules", "^nn.(" + "|".join(MODULES) + ")$", "--kinds", "train")
    assert len(results) == len(MODULES)


def test_optimizers(tmp_path):
    results = sweep(tmp_path, "optimizer_driver.py", "--optimizers", "^(AdamW|SGD|NAdam)$")
    assert {r["kind"] for r in results} == {"default", "foreach", "fused", "capturable", "differentiable"}
    assert len(results) >= 12
