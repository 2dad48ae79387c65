"""Models as users train them: the loss curves of the CPU, step for step."""
import copy
import io

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from common import DEV, close, same


def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float32) / 16
    y = torch.tensor(data.target)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(3))
    x, y = x[order], y[order]
    return x[:1440], y[:1440], x[1440:], y[1440:]


def curve(model, device, x, y, epochs, batch, make):
    model = copy.deepcopy(model).to(device)
    x, y = x.to(device), y.to(device)
    opt = make(model.parameters())
    losses = []
    for epoch in range(epochs):
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(epoch)).to(device)
        for i in range(0, len(y), batch):
            idx = order[i:i + batch]
            opt.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
            losses.append(loss.detach())
    return model, torch.stack(losses).cpu()


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x.to(DEV)).argmax(1).cpu() == y).float().mean().item()


def test_mlp_on_digits():
    x, y, tx, ty = digits()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 10))
    make = lambda p: torch.optim.AdamW(p, lr=3e-3)  # noqa: E731
    trained, mine = curve(model, DEV, x, y, 12, 96, make)
    _, theirs = curve(model, "cpu", x, y, 12, 96, make)
    close(mine[:60], theirs[:60], rtol=1e-3, atol=1e-4)
    close(mine, theirs, rtol=5e-2, atol=5e-3)
    assert accuracy(trained, tx, ty) >= 0.97


def test_cnn_on_digits():
    x, y, tx, ty = digits()
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
                          nn.Flatten(), nn.Linear(128, 10))
    make = lambda p: torch.optim.Adam(p, lr=5e-3)  # noqa: E731
    trained, mine = curve(model, DEV, x[:, None], y, 5, 96, make)
    _, theirs = curve(model, "cpu", x[:, None], y, 5, 96, make)
    close(mine[:20], theirs[:20], rtol=2e-3, atol=2e-4)
    close(mine, theirs, rtol=1e-1, atol=2e-2)
    trained.eval()
    assert accuracy(trained, tx[:, None], ty) >= 0.97


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.a = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.na = nn.BatchNorm2d(cout)
        self.b = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.nb = nn.BatchNorm2d(cout)
        self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout)) if stride != 1 or cin != cout else nn.Identity()

    def forward(self, x):
        y = F.relu(self.na(self.a(x)), inplace=True)
        y = self.nb(self.b(y))
        y += self.skip(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self, widths=(8, 16, 32, 64), classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks, cin = [], widths[0]
        for i, w in enumerate(widths):
            blocks += [Block(cin, w, 1 if i == 0 else 2), Block(w, w, 1)]
            cin = w
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(cin, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


@pytest.mark.parametrize("channels_last", [False, True])
def test_resnet_steps(channels_last):
    model = ResNet()
    x, y = torch.randn(4, 3, 48, 48), torch.randint(0, 10, (4,))
    results = []
    for device in ("cpu", DEV):
        m = copy.deepcopy(model).to(device)
        xx = x.to(device)
        if channels_last:
            m, xx = m.to(memory_format=torch.channels_last), xx.to(memory_format=torch.channels_last)
        opt = torch.optim.SGD(m.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4, nesterov=True)
        losses = []
        for _ in range(3):
            opt.zero_grad(set_to_none=False)
            out = m(xx)
            loss = F.cross_entropy(out, y.to(device), label_smoothing=0.1)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        results.append((losses, [b.detach().cpu() for b in m.buffers()]))
    close(results[1][0], results[0][0], rtol=2e-3, atol=1e-3)
    close(results[1][1], results[0][1], rtol=2e-2, atol=5e-3)


class GPT(nn.Module):
    def __init__(self, vocab=40, ctx=16, dim=32, heads=4, layers=2, checkpoint=False):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(ctx, dim)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            self.blocks.append(nn.ModuleDict(dict(n1=nn.LayerNorm(dim), qkv=nn.Linear(dim, 3 * dim), out=nn.Linear(dim, dim),
                                                  n2=nn.LayerNorm(dim), up=nn.Linear(dim, 4 * dim), down=nn.Linear(4 * dim, dim))))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tok.weight
        self.heads, self.checkpoint, self.p = heads, checkpoint, 0.0

    def block(self, b, x):
        n, t, d = x.shape
        q, k, v = b["qkv"](b["n1"](x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(b["out"](a.transpose(1, 2).reshape(n, t, d)), self.p, self.training)
        return x + b["down"](F.gelu(b["up"](b["n2"](x)), approximate="tanh"))

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1], device=idx.device))
        for b in self.blocks:
            if self.checkpoint:
                x = torch.utils.checkpoint.checkpoint(self.block, b, x, use_reentrant=False)
            else:
                x = self.block(b, x)
        return self.head(self.norm(x))


def text_batches(n=12, batch=8, ctx=16):
    text = ("the quick brown fox jumps over the lazy dog; " * 40)
    chars = sorted(set(text))
    ids = torch.tensor([chars.index(c) for c in text])
    g = torch.Generator().manual_seed(5)
    for _ in range(n):
        at = torch.randint(0, len(ids) - ctx - 1, (batch,), generator=g)
        yield torch.stack([ids[a:a + ctx] for a in at]), torch.stack([ids[a + 1:a + ctx + 1] for a in at])


@pytest.mark.parametrize("checkpoint", [False, True])
def test_char_gpt(checkpoint):
    model = GPT(checkpoint=checkpoint)
    curves = []
    for device in ("cpu", DEV):
        m = copy.deepcopy(model).to(device)
        opt = torch.optim.AdamW(m.parameters(), lr=3e-3)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 12)
        losses = []
        for x, y in text_batches():
            loss = F.cross_entropy(m(x.to(device)).flatten(0, 1), y.to(device).flatten())
            loss.backward()
            norm = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            losses.append([loss.item(), norm.item()])
        curves.append(torch.tensor(losses))
    close(curves[1], curves[0], rtol=1e-3, atol=1e-4)
    assert curves[1][-1, 0] < curves[1][0, 0] - 0.3


def test_checkpointing_replays_dropout():
    model = GPT(checkpoint=False).to(DEV)
    model.p = 0.3
    x, y = next(iter(text_batches()))
    grads = []
    for checkpoint in (False, True):
        model.checkpoint = checkpoint
        torch.manual_seed(11)
        model.zero_grad()
        F.cross_entropy(model(x.to(DEV)).flatten(0, 1), y.to(DEV).flatten()).backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    close(grads[1], grads[0])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent(kind):
    net = getattr(nn, kind)(6, 12, num_layers=2, batch_first=True, bidirectional=kind == "LSTM")
    head = nn.Linear(24 if kind == "LSTM" else 12, 3)
    x, y = torch.randn(5, 7, 6), torch.randint(0, 3, (5,))
    curves = []
    for device in ("cpu", DEV):
        a, b = copy.deepcopy(net).to(device), copy.deepcopy(head).to(device)
        opt = torch.optim.RMSprop([*a.parameters(), *b.parameters()], lr=1e-2)
        losses = []
        for _ in range(4):
            opt.zero_grad()
            out, _ = a(x.to(device))
            loss = F.cross_entropy(b(out[:, -1]), y.to(device))
            loss.backward()
            opt.step()
            losses.append(loss.item())
        curves.append(losses)
    close(curves[1], curves[0], rtol=1e-3, atol=1e-4)


def test_packed_sequences():
    net = nn.LSTM(4, 8)
    x, lengths = torch.randn(6, 3, 4), [6, 4, 1]
    outs = []
    for device in ("cpu", DEV):
        m = copy.deepcopy(net).to(device)
        packed = nn.utils.rnn.pack_padded_sequence(x.to(device), lengths)
        out, (h, c) = m(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out)
        (out.sum() + h.sum()).backward()
        outs.append((out.cpu(), h.cpu(), c.cpu(), m.weight_ih_l0.grad.cpu()))
    close(outs[1], outs[0])


OPTIMIZERS = {
    "SGD": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "SGD_plain": (torch.optim.SGD, dict(lr=0.1)),
    "Adam": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.01)),
    "Adam_amsgrad": (torch.optim.Adam, dict(lr=0.01, amsgrad=True)),
    "AdamW": (torch.optim.AdamW, dict(lr=0.01)),
    "Adagrad": (torch.optim.Adagrad, dict(lr=0.05)),
}


@pytest.mark.parametrize("impl", ["for-loop", "foreach", "fused"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, impl):
    cls, kw = OPTIMIZERS[name]
    if impl == "fused" and name == "Adagrad":
        pytest.skip("PyTorch's fused Adagrad is for the CPU alone")
    extra = {"for-loop": dict(foreach=False), "foreach": dict(foreach=True), "fused": dict(fused=True)}[impl]
    start = [torch.randn(3, 4), torch.randn(4), torch.randn(())]
    grads = [[torch.randn_like(p) for p in start] for _ in range(4)]
    results = []
    for device in ("cpu", DEV):
        params = [nn.Parameter(p.clone().to(device)) for p in start]
        opt = cls(params, **kw, **(extra if device != "cpu" else {}))
        for step in grads:
            for p, g in zip(params, step):
                p.grad = g.to(device)
            opt.step()
        results.append([p.detach().cpu() for p in params])
    close(results[1], results[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "LBFGS"])
def test_other_optimizers(name):
    start = torch.randn(4, 3)
    results = []
    for device in ("cpu", DEV):
        p = nn.Parameter(start.clone().to(device))
        opt = getattr(torch.optim, name)([p])

        def closure():
            opt.zero_grad()
            loss = (p ** 2).sum() + p.sin().sum()
            loss.backward()
            return loss

        for _ in range(2):
            opt.step(closure)
        results.append(p.detach().cpu())
    close(results[1], results[0])


@pytest.mark.parametrize("name,kw", [("StepLR", dict(step_size=2)), ("OneCycleLR", dict(max_lr=0.1, total_steps=10)),
                                     ("ExponentialLR", dict(gamma=0.9))])
def test_schedulers_do_not_recompile(name, kw):
    p = nn.Parameter(torch.ones(7, device=DEV))
    opt = torch.optim.AdamW([p], lr=0.01)
    sched = getattr(torch.optim.lr_scheduler, name)(opt, **kw)
    for step in range(6):
        if step == 2:
            before = torch.tpu.counters()["compiles"] + torch.tpu.counters()["disk_hits"]
        p.grad = p.detach() * 2
        opt.step()
        sched.step()
    assert torch.tpu.counters()["compiles"] + torch.tpu.counters()["disk_hits"] == before


@pytest.mark.parametrize("norm", [2.0, float("inf"), 1.0])
def test_clip_grad_norm(norm):
    g = [torch.randn(5, 3) * 4, torch.randn(3)]
    results = []
    for device in ("cpu", DEV):
        ps = [nn.Parameter(torch.zeros_like(t).to(device)) for t in g]
        for p, t in zip(ps, g):
            p.grad = t.clone().to(device)
        total = nn.utils.clip_grad_norm_(ps, 0.7, norm_type=norm)
        results.append((total.cpu(), [p.grad.cpu() for p in ps]))
    close(results[1], results[0])
    with pytest.raises(RuntimeError, match="non-finite"):
        ps[0].grad[0, 0] = float("nan")
        nn.utils.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True)


def test_resume_gives_the_same_bits():
    model = GPT().to(DEV)
    model.p = 0.1
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = list(text_batches(6))

    def steps(model, opt, some):
        for x, y in some:
            opt.zero_grad()
            F.cross_entropy(model(x.to(DEV)).flatten(0, 1), y.to(DEV).flatten()).backward()
            opt.step()

    steps(model, opt, batches[:3])
    file = io.BytesIO()
    torch.save(dict(model=model.state_dict(), opt=opt.state_dict(), rng=torch.tpu.get_rng_state()), file)
    steps(model, opt, batches[3:])

    file.seek(0)
    saved = torch.load(file, map_location="cpu")
    again = GPT().to(DEV)
    again.p = 0.1
    opt2 = torch.optim.AdamW(again.parameters(), lr=1e-3)
    again.load_state_dict(saved["model"])
    opt2.load_state_dict(saved["opt"])
    torch.tpu.set_rng_state(saved["rng"])
    steps(again, opt2, batches[3:])
    same(list(again.parameters()), list(model.parameters()))


def test_transformer_encoder_layer():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    x = torch.randn(2, 5, 16)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[1, 3:] = True
    outs = []
    for device in ("cpu", DEV):
        m = copy.deepcopy(layer).to(device)
        out = m(x.to(device), src_key_padding_mask=mask.to(device))
        out.square().mean().backward()
        m.eval()
        with torch.no_grad():
            fast = m(x.to(device))
        outs.append((out.detach().cpu(), m.linear1.weight.grad.cpu(), fast.cpu()))
    close(outs[1], outs[0])


def test_embedding_bag_and_multihead():
    bag = nn.EmbeddingBag(10, 4, mode="mean")
    mha = nn.MultiheadAttention(8, 2, batch_first=True)
    ids, offsets, x = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 5]), torch.randn(2, 3, 8)
    outs = []
    for device in ("cpu", DEV):
        b, m = copy.deepcopy(bag).to(device), copy.deepcopy(mha).to(device)
        e = b(ids.to(device), offsets.to(device))
        a, w = m(*[x.to(device)] * 3)
        (e.sum() + a.square().sum()).backward()
        outs.append((e.detach().cpu(), a.detach().cpu(), w.detach().cpu(), b.weight.grad.cpu(), m.in_proj_weight.grad.cpu()))
    close(outs[1], outs[0])
