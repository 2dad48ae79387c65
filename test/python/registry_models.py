"""Small random models of Hugging Face transformers, made from each architecture's own default configuration.

`build(model_type)` gives (model on the CPU in eval mode, its inputs, what was chosen in words). Nothing is known about single
architectures: a configuration's numbers are recognised by their names, widths are divided by one factor (so that their
ratios, which the models rely on, stay), depths and vocabularies are cut, and the first factor whose model runs on the CPU
is taken. Raises CannotBuild with the last error where none does.
"""
import inspect
import re

import torch

LIMIT = 60e6  # parameters of a "small" model
FACTORS = (16, 8, 4, 1)
DEPTH = re.compile(r"^(num_(hidden_|encoder_|decoder_|text_|vision_|attention_|block|.*_)?(layers|blocks)|n_layers?|.*_layers|(.*_)?depth|num_hidden_groups)$")
NOT_DEPTH = re.compile(r"feat_extract|first_k|dense_layers|hash|conv_layers|adapter|position|mlp_layers|share|^use_|kv_|feature_layer")
DEPTHS = re.compile(r"^(depths|layer_depths|num_blocks|layers?|layers_per_stage|num_block_repeats|encoder_depths|decoder_depths)$")
WIDTH = re.compile(r"(hidden_size|hidden_sizes|d_model|n_embd|embed_dim|embed_dims|_dim|^dim|dims|d_ff|d_kv|d_inner|n_inner|ffn_dim|intermediate_size|"
                   r"embedding_size|projection_size|_channels|_lora_rank|embed_size|proj_size|widths?|ffn_hidden_size|dim_head|head_size|d_head|"
                   r"conv_dim|tdnn_dim|inner_size|mlp_hidden|lru_width|bottleneck_size)$")
NOT_WIDTH = re.compile(r"^num_channels|kernel|image|in_channels|out_channels_?list|num_input_channels|audio_channels|norm_dim|vocab|patch_dim|"
                       r"^in_chans|input_channels|pos_dim|n_dims|spatial|time_dim|output_dim_?labels")
VOCABULARY = re.compile(r"(vocab_size.*|^vocabulary_size|codebook_size|n_vocab|num_embeddings|vocab_sizes)$")
HEADS = re.compile(r"^(n_heads?|num_heads|num_(key_value_|kv_)?heads|num_attention_heads|num_key_value_heads|n_kv_heads|(encoder|decoder)_attention_heads)$")
HEAD_WIDTH = re.compile(r"(head_dim|d_kv|dim_head|head_size|d_head|_rope_dim|rotary_dim)$")
EXPERTS = re.compile(r"^(num_experts|n_routed_experts|num_local_experts|moe_num_experts|n_experts|num_routed_experts)$")
TOKEN = re.compile(r"(token_id|token_index|_token|token_idx)$")
NOISE = re.compile(r"(drop|mask_time_prob|mask_feature_prob|jitter|layerdrop|drop_path|stochastic)")
LAYERS = ("layer_types", "layers_block_type", "mlp_layer_types", "hybrid_override_pattern", "attention_types")
VOCAB = 512


class CannotBuild(Exception):
    """No small model of this architecture runs on the CPU; the text is the last reason."""


# ---------------------------------------------------------------- the configuration
def _divided(value, k):
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value // k if value >= 2 * k and value % k == 0 else value
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, (int, list, tuple)) for v in value):
        return type(value)(_divided(v, k) for v in value)
    return value


def _prefix(types):
    """How many of a list of layer types it takes to have one of each (two at least): a prefix keeps their pattern."""
    return max(2, max(types.index(t) for t in types) + 1)


def _rope(value, k):
    """RoPE's parameters: the sections of a head's width that M-RoPE gives to time, height and width shrink with it."""
    if isinstance(value, dict):
        return {n: _rope(v, k) if isinstance(v, dict) else _divided(v, k) if n == "mrope_section" else v for n, v in value.items()}
    return value


def shrink(d, k, images, heads):
    """A smaller copy of a configuration's dict. |images|: also cut the sizes of images and positions; |heads|: fewer heads
    rather than narrower ones."""
    out, depth = {}, 2
    for name in LAYERS:
        if isinstance(d.get(name), list) and d[name]:
            depth = max(depth, min(_prefix(d[name]), 8))
    layers = next((d[n] for n in ("num_hidden_layers", "n_layer", "num_layers") if isinstance(d.get(n), int)), None)
    tokens = VOCAB - 1
    for name, value in d.items():
        if name in ("id2label", "label2id"):
            pass
        elif name.startswith("rope"):
            value = value if heads else _rope(value, k)
        elif isinstance(value, dict) and value and all(str(n).isdigit() for n in value):  # by layer
            value = {n: v for n, v in value.items() if int(n) < depth}
        elif isinstance(value, dict):
            value = shrink(value, k, images, heads)
        elif name in ("out_features", "out_indices", "stage_names", "_out_features", "_out_indices"):
            continue
        elif isinstance(value, list) and len(value) == layers and layers > depth:  # by layer
            value = _divided(value[:depth], k) if WIDTH.search(name) else value[:depth]
        elif "feature_layer" in name and isinstance(value, (int, list)):
            value = [min(v, i) for i, v in enumerate(value)] if isinstance(value, list) else min(value, 1)
        elif isinstance(value, bool) or (value is None and name != "prediction_length"):
            pass
        elif isinstance(value, float) and NOISE.search(name):
            value = 0.0
        elif isinstance(value, list) and NOISE.search(name):
            value = [0.0 for _ in value]
        elif VOCABULARY.search(name) and isinstance(value, int):
            value = min(value, VOCAB)
        elif TOKEN.search(name) and isinstance(value, int) and value >= VOCAB:
            value, tokens = tokens, tokens - 1
        elif EXPERTS.match(name) and isinstance(value, int):
            value = min(value, 4)
        elif name in ("num_experts_per_tok", "moe_k", "moe_topk", "num_selected_experts", "top_k_experts") and isinstance(value, int):
            value = min(value, 2)
        elif name in ("n_group", "topk_group", "num_expert_group") and isinstance(value, int):
            value = 1
        elif name == "first_k_dense_replace":
            value = min(value, 1)
        elif DEPTH.match(name) and not NOT_DEPTH.search(name) and isinstance(value, int):
            value = min(value, depth)
        elif DEPTHS.match(name) and isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
            value = type(value)(min(v, 1) for v in value)
        elif heads and HEADS.match(name):
            value = _divided(value, k)
        elif heads and HEAD_WIDTH.search(name):
            pass
        elif name == "prediction_length" and value is None:
            value = 8
        elif WIDTH.search(name) and not NOT_WIDTH.search(name):
            value = _divided(value, k)
        elif images and name in ("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions"):
            value = min(value, 514)  # RoBERTa's positions begin after the padding token's
        elif images and name == "image_size" and isinstance(value, int) and value > 64:
            patch = d.get("patch_size", 16)
            patch = patch if isinstance(patch, int) else 16
            value = max(patch * 4, 64)
        out[name] = value
    return out


def configurations(config_class):
    """(configuration, in words), the smallest first."""
    full = config_class().to_dict()
    for k in FACTORS:
        for images, heads in ((True, False), (True, True), (False, False), (False, True)):
            try:
                config = config_class.from_dict(shrink(full, k, images, heads))
            except Exception as e:  # noqa: BLE001 - the configuration's own checks
                yield None, f"{type(e).__name__}: {e}"
                continue
            if hasattr(config, "use_cache"):
                config.use_cache = False
            yield config, f"1/{k}{', fewer heads' if heads else ''}{', small images' if images else ''}"


# ---------------------------------------------------------------- the model and what it is fed
PREFERRED = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_MASKED_LM_MAPPING_NAMES", "MODEL_MAPPING_NAMES")


def architectures():
    """model type -> name of the class that stands for it: a language model's head where there is one, else the bare model."""
    from transformers.models.auto import modeling_auto as auto

    found = {}
    names = PREFERRED + tuple(sorted(n for n in dir(auto) if n.endswith("MAPPING_NAMES") and n != "CONFIG_MAPPING_NAMES" and n not in PREFERRED))
    for mapping in names:
        for kind, cls in getattr(auto, mapping).items():
            found.setdefault(kind, cls if isinstance(cls, str) else cls[0])
    return dict(sorted(found.items()))


def _first(config, names, default):
    """The first of |names| that the configuration or one of its parts has."""
    parts = [config] + [v for v in vars(config).values() if hasattr(v, "to_dict")]
    for part in parts:
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value
    return default


def _size(config):
    size = _first(config, ("image_size", "img_size", "input_size", "crop_size"), 64)
    if isinstance(size, dict):
        size = size.get("height", 64), size.get("width", 64)
    return tuple(size)[-2:] if isinstance(size, (list, tuple)) else (size, size)


def inputs(model, config):
    """Candidate dicts of inputs, the likeliest first."""
    g = torch.Generator().manual_seed(0)
    takes = set(inspect.signature(model.forward).parameters)
    channels = _first(config, ("num_channels", "in_channels", "in_chans"), 3)
    h, w = _size(config)

    def floats(*shape):
        return torch.randn(*shape, generator=g)

    ids = torch.randint(5, 200, (2, 16), generator=g)
    text = {"input_ids": ids}
    if "attention_mask" in takes:
        text["attention_mask"] = torch.ones_like(ids)
    decoder = {"decoder_input_ids": torch.randint(5, 200, (2, 8), generator=g)} if "decoder_input_ids" in takes else {}
    images = {"pixel_values": floats(2, channels, h, w)}
    frames = _first(config, ("num_frames",), 4)
    video = [{"pixel_values": floats(1, frames, channels, h, w)}, {"pixel_values_videos": floats(1, frames, channels, h, w)}]
    mels = _first(config, ("num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "feat_dim"), 80)
    positions = _first(config, ("max_source_positions",), 100)
    sound = [{"input_features": floats(2, mels, 2 * positions)}, {"input_features": floats(2, mels, 64)}, {"input_features": floats(2, 64, mels)},
             {"input_values": floats(2, 4000)}, {"input_values": floats(2, 1, 4000)}, {"input_values": floats(2, 64, mels)}]
    out = []
    if "input_ids" in takes and "pixel_values" in takes:
        out += [{**text, **images, **decoder}, {**text, **decoder}]
    if "input_ids" in takes:
        out += [{**text, **decoder}, {"input_ids": ids, **decoder}]
    if "pixel_values" in takes:
        out += [{**images, **decoder}] + video[:1]
    out += [{**v, **decoder} for v in video[1:] + sound if set(v) <= takes]
    if takes & {"inputs_embeds", "hidden_states", "query_embeds"}:
        width = _first(config, ("hidden_size", "d_model", "embed_dim"), 64)
        out += [{n: floats(2, 16, width)} for n in ("inputs_embeds", "hidden_states", "query_embeds") if n in takes]
    if "past_values" in takes:
        length = getattr(config, "context_length", 32)
        lag = max(getattr(config, "lags_sequence", None) or [0])
        channels = getattr(config, "num_input_channels", 1)
        horizon = getattr(config, "prediction_length", None) or 8
        out += [{"past_values": floats(2, length), "past_values_padding": torch.zeros(2, length), "freq": torch.zeros(2, 1, dtype=torch.long)}] if "freq" in takes else []
        out += [{"past_values": floats(2, length, channels)}, {"past_values": floats(2, length)},
                {"past_values": floats(2, length + lag), "past_time_features": floats(2, length + lag, max(1, getattr(config, "num_time_features", 1))),
                 "past_observed_mask": torch.ones(2, length + lag), "future_values": floats(2, horizon),
                 "future_time_features": floats(2, horizon, max(1, getattr(config, "num_time_features", 1)))}]
    return out


def tensors(value):
    """The floating tensors of a model's output, in order."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def _roughen(model):
    """Parameters that begin all equal get noise: routers of zeros choose experts by ties, biases of zero hide mistakes."""
    with torch.no_grad():
        for p in model.parameters():
            if p.is_floating_point() and p.numel() > 1 and bool((p == p.flatten()[0]).all()):
                p.add_(0.05 * torch.randn_like(p))


def build(kind):
    import transformers
    from transformers import CONFIG_MAPPING

    cls = getattr(transformers, architectures()[kind])
    reasons = {}  # by how far it got, the first

    def failed(stage, why):
        reasons.setdefault(stage, why if isinstance(why, str) else f"{type(why).__name__}: {why}")

    for config, words in configurations(CONFIG_MAPPING[kind]):
        if config is None:
            failed(0, words)
            continue
        try:
            with torch.device("meta"):
                size = sum(p.numel() for p in cls(config).parameters())
            if size > LIMIT:
                failed(1, f"{size / 1e6:.0f} million parameters at {words}")
                continue
        except Exception as e:  # noqa: BLE001 - whatever a constructor finds wrong with such sizes
            failed(2, e)
        try:
            torch.manual_seed(0)
            model = cls(config).eval()
            _roughen(model)
        except Exception as e:  # noqa: BLE001
            failed(2, e)
            continue
        failed(3, "there is nothing to feed it: " + " ".join(inspect.signature(model.forward).parameters))
        for feed in inputs(model, config):
            try:
                with torch.no_grad():
                    found = tensors(model(**feed))
                if found and all(torch.isfinite(t).any() for t in found if t.numel()):
                    return model, feed, f"{cls.__name__} {words}, {sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters, {' '.join(feed)}"
                failed(5, "no finite results")
            except Exception as e:  # noqa: BLE001
                failed(4, e)
    raise CannotBuild(" ".join(reasons[max(reasons)].split())[:200])
