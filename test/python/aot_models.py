"""Models that tests and the command line compile ahead of time."""
import torch
import torch.nn.functional as F
from torch import nn

DIM, LAYERS, HEADS, FFN, VOCAB, BATCH, LENGTH = 1024, 1, 8, 2816, 1024, 32, 32


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight)


def rotate(x):
    """Positions as angles: queries or keys (..., length, dim), rotated."""
    length, dim = x.shape[-2:]
    angle = torch.outer(torch.arange(length, device=x.device), 10000.0 ** -(torch.arange(0, dim, 2, device=x.device) / dim))
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Block(nn.Module):
    """A Llama-like layer: RMS norm, attention with rotated queries and keys, SwiGLU."""

    def __init__(self, dim, heads, ffn):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = Norm(dim), Norm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.up, self.gate, self.down = (nn.Linear(dim, ffn, bias=False), nn.Linear(dim, ffn, bias=False),
                                         nn.Linear(ffn, dim, bias=False))

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, s, d))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, dim=DIM, layers=LAYERS, heads=HEADS, ffn=FFN, vocab=VOCAB):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, ffn) for _ in range(layers))
        self.norm, self.head = Norm(dim), nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def products(self):
        """Elements of the weights that every token is multiplied with: N of the 2ND rule."""
        return sum(p.numel() for n, p in self.named_parameters() if p.dim() == 2 and not n.startswith("embed"))


def next_token_loss(logits, tokens):
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), tokens[:, 1:].reshape(-1))


def make():
    """For ``torch-tpu explain``."""
    return {"model": Llama().to(torch.bfloat16), "args": (torch.zeros(BATCH, LENGTH, dtype=torch.long),), "loss": next_token_loss}


def not_static():
    class Branches(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x
            return -x

    return Branches(), (torch.zeros(3),)
