"""Host time of a compiled one-op function: all of the call, the call without Dynamo's guards, and the program alone.

    python bench/compile_overhead.py --calls 3000

Prints microseconds a call (median over batches, one thread): torch.compile'd `x + y` on 16x16, the same below Dynamo (what
AOTAutograd made, called with a list), the program through the runtime (`Program.run`), the eager operation, and what a backend
that does nothing costs under the same Dynamo (its guards and AOTAutograd's wrappers alone).
"""
import argparse
import statistics
import time

import torch
import torch._dynamo
from torch._dynamo.backends.common import aot_autograd


def cost(f, calls, batches=15):
    for _ in range(200):
        f()
    torch.tpu.synchronize()
    wall, cpu = [], []
    for _ in range(batches):
        start, thread = time.perf_counter(), time.thread_time()
        for _ in range(calls // batches):
            f()
        wall.append((time.perf_counter() - start) / (calls // batches) * 1e6)
        cpu.append((time.thread_time() - thread) / (calls // batches) * 1e6)
        torch.tpu.synchronize()
    return statistics.median(wall), min(wall), statistics.median(cpu)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--calls", type=int, default=3000)
    args = p.parse_args()
    torch.set_num_threads(1)
    import torch_tpu._compile as compiler
    from torch_tpu import _C

    x, y = torch.ones(16, 16, device="tpu"), torch.ones(16, 16, device="tpu")
    below = []

    def keep(gm, inputs):
        below.append(compiler.compile_fx(gm, inputs))
        return below[-1]

    torch.compile(lambda x, y: x + y, backend=aot_autograd(fw_compiler=keep), fullgraph=True)(x, y)
    torch._dynamo.reset()
    whole = torch.compile(lambda x, y: x + y, backend="tpu", fullgraph=True)
    graph = _C.Graph(0)
    a, b = graph.param(x.dtype, [16, 16]), graph.param(y.dtype, [16, 16])
    graph.outputs(graph.call("add.Tensor", a, b))
    program = graph.compile()
    result = [x]

    def nothing(gm, inputs):
        def run(args):
            return result

        run._boxed_call = True
        return run

    idle = torch.compile(lambda x, y: x + y + 0, backend=aot_autograd(fw_compiler=nothing, inference_compiler=nothing), fullgraph=True)
    rows = (("compiled function", lambda: whole(x, y)), ("without Dynamo's guards", lambda: below[0]([x, y])),
            ("program alone", lambda: program.run([x, y])), ("eager operation", lambda: x + y), ("a backend that does nothing", lambda: idle(x, y)))
    with torch.no_grad():
        for name, f in rows:
            median, least, cpu = cost(f, args.calls)
            print(f"{name:28} {median:7.2f} us (least {least:.2f}), CPU time of the calling thread {cpu:.2f}", flush=True)


if __name__ == "__main__":
    main()
