"""Tiny random models of Hugging Face transformers: outputs, gradients and greedy text as on the CPU."""
import copy

import pytest
import torch

from common import DEV, close

transformers = pytest.importorskip("transformers")
transformers.utils.logging.set_verbosity_error()

SMALL = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=None)


def causal(kind):
    t = transformers
    if kind == "gpt2":
        config = t.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=None,
                              pad_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        return t.GPT2LMHeadModel(config)
    if kind == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(**SMALL))
    if kind == "mistral":
        return t.MistralForCausalLM(t.MistralConfig(**SMALL, sliding_window=4))
    if kind == "qwen3":
        return t.Qwen3ForCausalLM(t.Qwen3Config(**SMALL, head_dim=8))
    if kind == "qwen3_moe":
        return t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(**SMALL, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16))
    if kind == "gemma":
        return t.GemmaForCausalLM(t.GemmaConfig(**SMALL, head_dim=8))
    raise KeyError(kind)


def backward(model, loss):
    loss.backward()
    return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "qwen3", "qwen3_moe", "gemma"])
def test_causal(kind):
    model = causal(kind).train()
    ids = torch.randint(2, 64, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, :3] = 0  # left padding
    seen = []
    for device in ("cpu", DEV):
        m = copy.deepcopy(model).to(device)
        out = m(input_ids=ids.to(device), attention_mask=mask.to(device), labels=ids.to(device))
        grads = backward(m, out.loss)
        m.eval()
        with torch.no_grad():
            text = m.generate(ids.to(device), attention_mask=mask.to(device), max_new_tokens=6, do_sample=False)
        seen.append((out.loss, out.logits[0], grads, text))
    close(seen[1][:3], seen[0][:3], rtol=2e-3, atol=1e-4)
    assert seen[1][3].tolist() == seen[0][3].tolist()


def test_sampling_is_reproducible():
    model = causal("llama").eval().to(DEV)
    ids = torch.randint(2, 64, (2, 5)).to(DEV)
    texts = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        texts.append(model.generate(ids, max_new_tokens=5, do_sample=True, top_k=20, top_p=0.9, temperature=1.3).tolist())
    assert texts[0] == texts[1] != texts[2]


def test_bf16_generation_runs():
    model = causal("llama").eval().to(DEV, torch.bfloat16)
    ids = torch.randint(2, 64, (1, 5)).to(DEV)
    assert model.generate(ids, max_new_tokens=3, do_sample=False).shape == (1, 8)


def check(model, inputs, pick, rtol=2e-3, atol=1e-4):
    seen = []
    for device in ("cpu", DEV):
        m = copy.deepcopy(model).to(device)
        out = pick(m(**{k: v.to(device) for k, v in inputs.items()}))
        seen.append((out, backward(m, out.float().square().mean())))
    close(seen[1], seen[0], rtol=rtol, atol=atol)


def test_bert():
    config = transformers.BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                                     hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[0, 4:] = 0
    check(transformers.BertModel(config), dict(input_ids=torch.randint(1, 64, (2, 7)), attention_mask=mask), lambda o: o.pooler_output)


def test_t5():
    config = transformers.T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0,
                                   decoder_start_token_id=0, pad_token_id=0, eos_token_id=None)
    model = transformers.T5ForConditionalGeneration(config)
    ids, labels = torch.randint(2, 64, (2, 7)), torch.randint(2, 64, (2, 5))
    check(model, dict(input_ids=ids, labels=labels), lambda o: o.logits)
    model.eval()
    texts = [copy.deepcopy(model).to(d).generate(ids.to(d), max_new_tokens=5, do_sample=False).tolist() for d in ("cpu", DEV)]
    assert texts[0] == texts[1]


def test_vit():
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8,
                                    num_labels=5)
    check(transformers.ViTForImageClassification(config), dict(pixel_values=torch.randn(2, 3, 32, 32)), lambda o: o.logits)


def test_clip():
    text = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=16,
                bos_token_id=1, eos_token_id=2, pad_token_id=0)
    vision = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    ids = torch.randint(3, 64, (2, 6))
    ids[:, -1] = 2
    check(model, dict(input_ids=ids, pixel_values=torch.randn(2, 3, 32, 32)), lambda o: o.logits_per_image)


def test_whisper():
    config = transformers.WhisperConfig(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8,
                                        max_source_positions=10, max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                        decoder_start_token_id=1, dropout=0.0)
    check(transformers.WhisperForConditionalGeneration(config),
          dict(input_features=torch.randn(2, 8, 20), decoder_input_ids=torch.randint(3, 64, (2, 5))), lambda o: o.logits)
