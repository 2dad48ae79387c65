"""Random programs over values with two symbolic dims, for property tests of bounded sizes.

``build(seed)`` gives a function of (x [n, m], y [n, m], i [n] integers in [0, 2)). The same seed gives the same program.
"""
import random

import torch
import torch.nn.functional as F

KEEP = [  # [a, b] -> [a, b]
    lambda x, y: x + y, lambda x, y: x * 0.5 - y, lambda x, y: torch.where(x > 0, x, y), lambda x, y: x.tanh(), lambda x, y: x.softmax(0),
    lambda x, y: x.softmax(1), lambda x, y: x - x.mean(0), lambda x, y: x - x.amax(1, keepdim=True), lambda x, y: x.cumsum(0) * 0.1,
    lambda x, y: x.cumsum(1) * 0.1, lambda x, y: x.sort(0)[0], lambda x, y: x.sort(1, descending=True)[0], lambda x, y: x.flip(0), lambda x, y: x.roll(1, 1),
    lambda x, y: torch.cat([x[1:], y[:1]]), lambda x, y: torch.cat([y[:, -1:], x[:, :-1]], 1), lambda x, y: (x @ y.t()) @ y * 0.1,
    lambda x, y: x.reshape(-1).cumsum(0).view(x.shape) * 0.1, lambda x, y: x.t().reshape(x.shape), lambda x, y: x.tril() + y.triu(),
    lambda x, y: x + torch.arange(x.shape[1], device=x.device), lambda x, y: x / x.shape[0], lambda x, y: x[torch.arange(x.shape[0], device=x.device).flip(0)],
    lambda x, y: x.gather(1, x.argsort(1)), lambda x, y: x + x.var(0, unbiased=False), lambda x, y: x.unsqueeze(1).expand(-1, 2, -1).reshape(-1, x.shape[1])[: x.shape[0]],
    lambda x, y: F.pad(x, (1, 0))[:, :-1], lambda x, y: torch.stack([x, y], 1).flatten(0, 1)[::2], lambda x, y: x.repeat(2, 1)[x.shape[0]:],
    lambda x, y: x.scatter_add(0, x.argsort(0), y), lambda x, y: x.masked_fill(y > 1, 0.25), lambda x, y: torch.cat([x, y], 1).chunk(2, 1)[1] + x,
    lambda x, y: F.avg_pool1d(x.unsqueeze(1).transpose(0, 2), 1).transpose(0, 2).squeeze(1), lambda x, y: x.transpose(0, 1).contiguous().transpose(0, 1),
]
END = [
    lambda x, i: x, lambda x, i: x.sum(), lambda x, i: x.mean(1), lambda x, i: x.std(), lambda x, i: x.argmax(), lambda x, i: x.max(0), lambda x, i: x[i],
    lambda x, i: x[-1], lambda x, i: x.reshape(-1), lambda x, i: x.topk(2, 0), lambda x, i: x.norm(), lambda x, i: x.logsumexp(0),
    lambda x, i: F.embedding(i, x), lambda x, i: x.select(0, 1), lambda x, i: (x.shape[0] * x.sum(1)), lambda x, i: x.t() @ x,
]


def build(seed):
    rng = random.Random(seed)
    steps = [rng.choice(KEEP) for _ in range(rng.randint(2, 6))]
    ends = [rng.choice(END) for _ in range(2)]
    order = [rng.random() < 0.4 for _ in steps]

    def program(x, y, i):
        for step, swap in zip(steps, order):
            x, y = (y, step(x, y)) if swap else (step(x, y), y)
        return ends[0](x, i), ends[1](y, i)

    return program


def inputs(seed, n, m):
    generator = torch.Generator().manual_seed(seed * 1000 + n * 32 + m)
    draw = lambda: torch.randn(n, m, generator=generator)  # noqa: E731
    return draw(), draw(), torch.randint(0, 2, (n,), generator=generator)
