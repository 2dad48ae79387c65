"""Whole models as compiled programs: this backend, torch CPU eager, Inductor, torch_xla's openxla and jax.jit, in one run.

    python bench/compiled_models.py --models gpt_forward,gpt_train,resnet_train,llama_decode --modes cpu,tpu,inductor

Modes openxla and jax need interpreters of their own: --xla-python PATH (torch_xla 2.9 with its torch), --jax-python PATH. One
process a measurement. Prints the median wall and CPU time of a step and its ratio to the first mode; --threads 1 unless said
otherwise, for torch's kernels (XLA's thread pool takes what it wants: the CPU time tells). llama_decode's step is one token.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

TOKENS, WIDTH, LAYERS, HEADS, VOCABULARY, LENGTH, BATCH = 256, 384, 6, 6, 65, 256, 8


# ---------------------------------------------------------------- torch
def llama(device):
    """One step of greedy decoding over a static cache of 256 places."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
            self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((WIDTH, 1024), (WIDTH, 1024), (1024, WIDTH)))
            for name in ("keys", "values"):
                self.register_buffer(name, torch.zeros(1, HEADS, LENGTH, WIDTH // HEADS))

        def forward(self, x, at, cos, sin, mask):
            q, k, v = (t.view(1, 1, HEADS, -1).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))

            def turned(t):
                a, b = t.chunk(2, -1)
                return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

            self.keys.index_copy_(2, at, turned(k))
            self.values.index_copy_(2, at, v)
            a = F.scaled_dot_product_attention(turned(q), self.keys, self.values, attn_mask=mask)
            x = x + self.out(a.transpose(1, 2).reshape(1, 1, WIDTH))
            h = self.n2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head, self.norm = nn.Embedding(1000, WIDTH), nn.Linear(WIDTH, 1000, bias=False), nn.RMSNorm(WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            angles = torch.outer(torch.arange(LENGTH), 10000.0 ** (-torch.arange(WIDTH // HEADS // 2) / (WIDTH // HEADS // 2)))
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())

        def forward(self, token, at):
            mask = (torch.arange(LENGTH, device=at.device) <= at)[None, None, None]
            cos, sin = self.cos[at], self.sin[at]
            x = self.embed(token)[None]
            for layer in self.layers:
                x = layer(x, at, cos, sin, mask)
            return self.head(self.norm(x))[0].argmax(-1), at + 1

    return Llama().to(device).eval()


def torch_step(name, mode):
    """(function of a step giving a tensor, the function that waits)."""
    import torch

    import train_steps

    device, wait, kw = "cpu", lambda t: t.sum().item(), {}
    if mode == "tpu":
        device, kw = "tpu", {"backend": "tpu"}
    if mode == "openxla":
        import torch_xla
        import torch_xla.core.xla_model  # noqa: F401 - registers the backend

        device, kw = torch_xla.device(), {"backend": "openxla"}
    compiled = (lambda f: f) if mode == "cpu" else lambda f: torch.compile(f, **kw)
    if name == "llama_decode":
        model = llama(device)
        step = compiled(model)
        state = [torch.zeros(1, dtype=torch.int64, device=device), torch.zeros(1, dtype=torch.int64, device=device)]

        def decode():
            with torch.no_grad():
                state[:] = step(*state)
                if int(decode.count) == LENGTH - 1:
                    state[1].zero_()
                    decode.count = 0
            decode.count += 1
            return state[0]

        decode.count = 0
        return decode, wait
    model, loss_of, optimizer = train_steps.MODELS[name.split("_")[0]](device)
    forward = compiled(model)
    if name.endswith("forward"):
        def run():
            with torch.no_grad():
                return loss_of(forward)
        return run, wait
    step = compiled(optimizer.step) if mode == "tpu" else optimizer.step

    def train():
        optimizer.zero_grad()
        loss = loss_of(forward)
        loss.backward()
        step()
        if mode == "openxla":
            torch_xla.sync()
        return loss.detach()

    return train, wait


# ---------------------------------------------------------------- jax
def jax_step(name):
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng, d = np.random.default_rng(0), WIDTH

    def dense(i, o):
        return {"w": rng.uniform(-1, 1, (i, o)).astype(np.float32) / np.sqrt(i), "b": np.zeros(o, np.float32)}

    def norm():
        return {"w": np.ones(d, np.float32), "b": np.zeros(d, np.float32)}

    params = {"token": rng.standard_normal((VOCABULARY, d)).astype(np.float32), "position": rng.standard_normal((TOKENS, d)).astype(np.float32),
              "norm": norm(), "head": dense(d, VOCABULARY),
              "blocks": [{"n1": norm(), "n2": norm(), "qkv": dense(d, 3 * d), "out": dense(d, d), "up": dense(d, 4 * d), "down": dense(4 * d, d)}
                         for _ in range(LAYERS)]}

    def linear(p, x):
        return x @ p["w"] + p["b"]

    def normed(p, x):
        m = x.mean(-1, keepdims=True)
        return (x - m) * jax.lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * p["w"] + p["b"]

    def loss_of(p, x, y):
        h = p["token"][x] + p["position"]
        mask = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
        for b in p["blocks"]:
            q, k, v = (t.reshape(BATCH, TOKENS, HEADS, -1).transpose(0, 2, 1, 3) for t in jnp.split(linear(b["qkv"], normed(b["n1"], h)), 3, -1))
            s = jnp.where(mask, q @ k.transpose(0, 1, 3, 2) / np.sqrt(d // HEADS), -jnp.inf)
            a = (jax.nn.softmax(s, -1) @ v).transpose(0, 2, 1, 3).reshape(BATCH, TOKENS, d)
            h = h + linear(b["out"], a)
            h = h + linear(b["down"], jax.nn.gelu(linear(b["up"], normed(b["n2"], h)), approximate=False))
        logits = linear(p["head"], normed(p["norm"], h))
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()

    x, y = (jnp.asarray(rng.integers(0, VOCABULARY, (BATCH, TOKENS))) for _ in range(2))
    if name == "gpt_forward":
        f, p = jax.jit(loss_of), jax.device_put(params)
        return (lambda: f(p, x, y)), lambda t: float(t)

    def step(p, m, v, t, x, y):  # AdamW as torch's defaults have it
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = jax.tree.map(lambda p, m, v: p * (1 - 3e-6) - 3e-4 / (1 - 0.9**t) * m / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), p, m, v)
        return p, m, v, t, loss

    f = jax.jit(step, donate_argnums=(0, 1, 2))
    p = jax.device_put(params)
    state = [p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.zeros(())]

    def train():
        *state[:], loss = f(*state, x, y)
        return loss

    return train, lambda t: float(t)


def measure(name, mode, steps, threads):
    start = time.perf_counter()
    if mode == "jax":
        step, wait = jax_step(name)
    else:
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(threads)
        step, wait = torch_step(name, mode)
    wait(step())
    first = time.perf_counter() - start
    for _ in range(3):
        value = wait(step())
    wall, cpu = [], []
    inner = 20 if name == "llama_decode" else 1
    for _ in range(steps):
        w, c = time.perf_counter(), time.process_time()
        for _ in range(inner):
            out = step()
        value = wait(out)
        wall.append((time.perf_counter() - w) / inner)
        cpu.append((time.process_time() - c) / inner)
    return {"value": float(value), "first": first, "wall": statistics.median(wall), "cpu": statistics.median(cpu)}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--models", default="gpt_forward,gpt_train,resnet_train,llama_decode")
    p.add_argument("--modes", default="cpu,tpu")
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--xla-python", default=sys.executable)
    p.add_argument("--jax-python", default=sys.executable)
    p.add_argument("--one", nargs=2)
    args = p.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one, args.steps, args.threads)))
        return
    for name in args.models.split(","):
        reference = None
        for mode in args.modes.split(","):
            if mode == "jax" and not name.startswith("gpt"):
                continue
            python = {"openxla": args.xla_python, "jax": args.jax_python}.get(mode, sys.executable)
            env = {**os.environ, "PJRT_DEVICE": "CPU"} if mode == "openxla" else dict(os.environ)
            done = subprocess.run([python, os.path.abspath(__file__), "--one", name, mode, "--steps", str(args.steps), "--threads", str(args.threads)],
                                  env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                print(f"{name:13} {mode:8} does not run: {(done.stderr.strip().splitlines() or ['?'])[-1][:150]}", flush=True)
                continue
            r = json.loads(done.stdout.strip().splitlines()[-1])
            reference = reference or r
            rate = f"  {1 / r['wall']:7.1f} tokens/s" if name == "llama_decode" else ""
            print(f"{name:13} {mode:8} step {r['wall'] * 1e3:8.2f} ms ({r['wall'] / reference['wall']:.2f}x)  cpu {r['cpu'] * 1e3:8.2f} ms "
                  f"({r['cpu'] / reference['cpu']:.2f}x)  first {r['first']:.1f} s  value {r['value']:.4f}{rate}", flush=True)


if __name__ == "__main__":
    main()
