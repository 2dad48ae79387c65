"""Models shared out over a mesh, written as their users would: DTensor plans, fully_shard, expert parallelism."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module

from aot_models import rotate

# Published configurations: meta-llama/Llama-3.1-{8B,70B,405B}, Qwen/Qwen3-{30B-A3B,235B-A22B}.
LLAMA_8B = {"dim": 4096, "layers": 32, "heads": 32, "kv": 8, "head": 128, "ffn": 14336, "vocab": 128256}
LLAMA_70B = {"dim": 8192, "layers": 80, "heads": 64, "kv": 8, "head": 128, "ffn": 28672, "vocab": 128256}
LLAMA_405B = {"dim": 16384, "layers": 126, "heads": 128, "kv": 8, "head": 128, "ffn": 53248, "vocab": 128256}
QWEN3_30B = {"dim": 2048, "layers": 48, "heads": 32, "kv": 4, "head": 128, "ffn": 768, "vocab": 151936, "experts": 128, "active": 8}
QWEN3_235B = {"dim": 4096, "layers": 94, "heads": 64, "kv": 4, "head": 128, "ffn": 1536, "vocab": 151936, "experts": 128, "active": 8}
TINY = {"dim": 32, "layers": 1, "heads": 4, "kv": 2, "head": 8, "ffn": 64, "vocab": 64}
TINY_MOE = {**TINY, "ffn": 16, "experts": 8, "active": 2, "capacity": 4.0}  # room for every token: nothing is dropped


class Attention(nn.Module):
    def __init__(self, dim, heads, kv, head, **_):
        super().__init__()
        self.head = head
        self.q, self.k, self.v = (nn.Linear(dim, n * head, bias=False) for n in (heads, kv, kv))
        self.o = nn.Linear(heads * head, dim, bias=False)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (f(x).view(b, s, -1, self.head).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(b, s, -1))


class Gated(nn.Module):
    def __init__(self, dim, ffn):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(dim, ffn, bias=False), nn.Linear(dim, ffn, bias=False), nn.Linear(ffn, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def all_to_all(x, group):
    from torch.distributed._functional_collectives import all_to_all_single_autograd

    return all_to_all_single_autograd(x, None, None, group)


class Experts(nn.Module):
    def __init__(self, experts, dim, ffn):
        super().__init__()
        self.gate, self.up = (nn.Parameter(torch.empty(experts, dim, ffn)) for _ in range(2))
        self.down = nn.Parameter(torch.empty(experts, ffn, dim))
        for p in self.parameters():
            nn.init.normal_(p, std=0.02)

    def forward(self, x):
        gate, up, down = (p.to_local() if isinstance(p, DTensor) else p for p in (self.gate, self.up, self.down))
        return (F.silu(x @ gate) * (x @ up)) @ down


class Moe(nn.Module):
    """Top-k routing into buffers of a fixed capacity; with ``group`` each rank computes its share of the experts."""

    def __init__(self, dim, ffn, experts, active, capacity=1.25):
        super().__init__()
        self.router, self.experts = nn.Linear(dim, experts, bias=False), Experts(experts, dim, ffn)
        self.n, self.active, self.capacity, self.group, self.ways = experts, active, capacity, None, 1

    def forward(self, hidden):
        x = hidden.reshape(-1, hidden.shape[-1])
        weight, chosen = self.router(x).float().softmax(-1).topk(self.active, -1)
        weight = (weight / weight.sum(-1, keepdim=True)).to(x.dtype)
        room = max(1, int(len(x) * self.active * self.capacity / self.n))
        chosen = chosen.reshape(-1)
        mark = F.one_hot(chosen, self.n)
        place = (mark.cumsum(0) * mark).sum(-1) - 1
        slot = torch.where(place < room, chosen * room + place, self.n * room)  # the last row takes what has no room
        sent = x.new_zeros(self.n * room + 1, x.shape[-1]).index_add(0, slot, x.repeat_interleave(self.active, 0))[:-1]
        if self.group is not None:
            sent = all_to_all(sent, self.group)
        mine = self.n // self.ways
        h = sent.view(self.ways, mine, room, -1).transpose(0, 1).reshape(mine, self.ways * room, -1)
        h = self.experts(h).view(mine, self.ways, room, -1).transpose(0, 1).reshape(self.n * room, -1)
        if self.group is not None:
            h = all_to_all(h, self.group)
        h = torch.cat((h, h.new_zeros(1, h.shape[-1])))[slot].view(len(x), self.active, -1)
        return (h * weight[..., None]).sum(1).view_as(hidden)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(config["dim"], eps=1e-6), nn.RMSNorm(config["dim"], eps=1e-6)
        self.attention = Attention(**config)
        moe = "experts" in config
        self.mlp = Moe(config["dim"], config["ffn"], config["experts"], config["active"], config.get("capacity", 1.25)) if moe else Gated(config["dim"], config["ffn"])

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class Decoder(nn.Module):
    def __init__(self, config, layers=None):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config["vocab"], config["dim"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(layers or config["layers"]))
        self.norm, self.head = nn.RMSNorm(config["dim"], eps=1e-6), nn.Linear(config["dim"], config["vocab"], bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss(logits, tokens):
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), tokens[:, 1:].reshape(-1))


def tensor_parallel(model, mesh, sequence=True):
    """The usual plan: columns, then rows; with ``sequence`` what lies between is shared out along the sequence."""
    between = Shard(1) if sequence else Replicate()
    parallelize_module(model, mesh, {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
        "norm": SequenceParallel() if sequence else PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Replicate(), use_local_output=True),
        "head": ColwiseParallel(input_layouts=between, output_layouts=Replicate())})
    for layer in model.layers:
        plan = {f"attention.{n}": ColwiseParallel() for n in "qkv"}
        plan.update({"attention.o": RowwiseParallel(output_layouts=between), "mlp.gate": ColwiseParallel(), "mlp.up": ColwiseParallel(),
                     "mlp.down": RowwiseParallel(output_layouts=between)})
        if sequence:
            gather = {"input_layouts": Shard(1), "desired_input_layouts": Replicate()}
            plan.update({"n1": SequenceParallel(), "n2": SequenceParallel(), "attention": PrepareModuleInput(**gather), "mlp": PrepareModuleInput(**gather)})
        parallelize_module(layer, mesh, plan)
    return model


def shard(model, mesh, dtype=None, **options):
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32 if dtype else None)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy, **options)
    return fully_shard(model, mesh=mesh, mp_policy=policy, **options)


def expert_parallel(model, mesh, dtype=None):
    """Experts over "ep", their shards over "dp"; all else over both."""
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32 if dtype else None)
    both = mesh["dp", "ep"]._flatten("dp_ep")
    for layer in model.layers:
        moe, experts = layer.mlp, layer.mlp.experts
        moe.group, moe.ways = mesh["ep"].get_group(), mesh["ep"].size()
        for name, p in list(experts.named_parameters()):
            local = p.detach().chunk(moe.ways, 0)[mesh["ep"].get_local_rank()].contiguous()
            setattr(experts, name, nn.Parameter(DTensor.from_local(local, mesh["ep"], [Shard(0)], run_check=False)))
        fully_shard(experts, mesh=mesh["dp"], mp_policy=policy)
        experts.set_gradient_divide_factor(both.size())
        fully_shard(layer, mesh=both, mp_policy=policy)
    return fully_shard(model, mesh=both, mp_policy=policy)


# ---------------------------------------------------------------- for torch-tpu explain --mesh
def llama_tp(mesh, config=LLAMA_70B, layers=2, batch=1, length=4096):
    model = tensor_parallel(Decoder(config, layers), mesh["tp"])
    shard(model, mesh["dp"], torch.bfloat16)
    return {"model": model, "args": (torch.zeros(batch, length, dtype=torch.long),), "loss": loss}


def qwen3_ep(mesh, config=QWEN3_235B, layers=2, batch=1, length=4096):
    model = expert_parallel(Decoder(config, layers), mesh, torch.bfloat16)
    return {"model": model, "args": (torch.zeros(batch, length, dtype=torch.long),), "loss": loss}
