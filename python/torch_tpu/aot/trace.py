"""An unmodified model or function, and example arguments -> one graph of ATen operators, without memory for weights.

Everything is traced over fake tensors of device ``tpu``: they have a shape, a dtype and strides, and nothing else, so a
model on the ``meta`` device is as good as a real one, and no TPU and no plugin is needed.
"""
import contextlib
import linecache
import os
import sys
import traceback
import warnings
from typing import Any, Callable, NamedTuple, Optional

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks_from_tensors
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class TraceError(RuntimeError):
    """The program could not be traced. ``where`` is the user's line ("file.py:12 in forward: code"), or ''."""

    def __init__(self, message: str, where: str = ""):
        super().__init__(message + (f"\n  at {where}" if where else ""))
        self.where = where


class Input(NamedTuple):
    kind: str  # "parameter", "buffer", "optimizer state", "argument"
    name: str


class Traced(NamedTuple):
    graph: torch.fx.GraphModule
    inputs: list  # Input of each placeholder, in order
    updates: dict  # number of an output -> number of the input it replaces
    parameters: int  # elements of the model's parameters


def user_frame(frames) -> str:
    """The innermost of |frames| (traceback.FrameSummary) that is neither PyTorch's nor ours."""
    for f in reversed(list(frames)):
        if _is_users(f.filename):
            return f"{f.filename}:{f.lineno} in {f.name}" + (f": {f.line}" if f.line else "")
    return ""


def _is_users(filename: str) -> bool:
    return not filename.startswith((_TORCH, _HERE, "<"))


class _Lines(TorchFunctionMode):
    """Puts the user's line on every operator that a call of PyTorch makes."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        frame = sys._getframe(1)
        while frame is not None and not _is_users(frame.f_code.co_filename):
            frame = None if frame.f_code is Program.__call__.__code__ else frame.f_back
        if frame is None:
            return func(*args, **(kwargs or {}))
        file, line = frame.f_code.co_filename, frame.f_lineno
        text = f'File "{file}", line {line}, in {frame.f_code.co_name}\n    {linecache.getline(file, line).strip()}'
        before = fx_traceback.current_meta.get("stack_trace")
        fx_traceback.current_meta["stack_trace"] = text
        try:
            return func(*args, **(kwargs or {}))
        finally:
            if before is None:
                fx_traceback.current_meta.pop("stack_trace", None)
            else:
                fx_traceback.current_meta["stack_trace"] = before


@contextlib.contextmanager
def _part(name: str):
    """Operators made inside say that they belong to this part of the program."""
    fx_traceback.current_meta["custom"] = {"part": name}
    try:
        yield
    finally:
        fx_traceback.current_meta.pop("custom", None)


def _lines_of_backward(graph: torch.fx.Graph) -> None:
    """Backward operators get the line of the forward operator with their sequence number."""
    lines = {}
    for node in graph.nodes:
        if node.meta.get("stack_trace") and not node.meta.get("autograd_backward"):
            lines.setdefault(node.meta.get("seq_nr"), node.meta["stack_trace"])
    for node in graph.nodes:
        if node.meta.get("autograd_backward") and node.meta.get("seq_nr", -1) in lines:
            node.meta["stack_trace"] = lines[node.meta["seq_nr"]]


def _fake(mode: FakeTensorMode, tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout != torch.strided:
        raise TraceError(f"an input of layout {tensor.layout}: only dense tensors can be compiled")
    with mode:
        out = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="tpu:0")
    return out.requires_grad_(tensor.requires_grad) if tensor.requires_grad else out


# ---------------------------------------------------------------- training
def _loss_of(out: Any, loss: Optional[Callable], args) -> torch.Tensor:
    value = loss(out, *args) if loss is not None else getattr(out, "loss", None)
    if value is None and isinstance(out, dict):
        value = out.get("loss")
    if value is None and isinstance(out, torch.Tensor):
        value = out
    if value is None and isinstance(out, (tuple, list)) and out and isinstance(out[0], torch.Tensor) and out[0].dim() == 0:
        value = out[0]
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        what = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise TraceError(f"train=True needs one number to minimise, and the model gave {what}: pass loss=f(output, *args)")
    return value


def _sgd(p, g, state, lr):
    return p - lr * g, {}


def _adamw(p, g, state, lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01):
    step = state["step"] + 1
    m = state["exp_avg"] * beta1 + g * (1 - beta1)
    v = state["exp_avg_sq"] * beta2 + g * g * (1 - beta2)
    denominator = (v / (1 - beta2**step)).sqrt() + eps
    update = (m / (1 - beta1**step)) / denominator
    return (p * (1 - lr * decay) - lr * update).to(p.dtype), {"step": step, "exp_avg": m.to(p.dtype), "exp_avg_sq": v.to(p.dtype)}


_OPTIMIZERS = {
    None: (None, lambda p, mode: {}),
    "sgd": (_sgd, lambda p, mode: {}),
    "adamw": (_adamw, lambda p, mode: {"exp_avg": p.detach(), "exp_avg_sq": p.detach()}),
}


# ---------------------------------------------------------------- the program
class Program:
    """The flat function that is traced, and what its inputs and outputs are."""

    def __init__(self, target, args, kwargs, train, loss, optimizer):
        if optimizer not in _OPTIMIZERS:
            raise ValueError(f"optimizer={optimizer!r}: one of 'adamw', 'sgd', None")
        self.target, self.train, self.loss = target, train, loss
        self.update, self.fresh_state = _OPTIMIZERS[optimizer if train else None]
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.module = target if isinstance(target, torch.nn.Module) else None
        self.inputs, self.values, self.parameters = [], [], 0
        if self.module is not None:
            self.module_inputs()
        elif train:
            raise ValueError("train=True needs a torch.nn.Module: a function has no parameters to train")
        leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.leaves = []  # the number of an input, or the leaf itself
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                self.leaves.append(("input", self.argument(f"arg{len(self.leaves)}", leaf)))
            else:
                self.leaves.append(("leaf", leaf))

    def argument(self, name, tensor):
        return self.add("argument", name, tensor)

    def add(self, kind, name, tensor):
        self.inputs.append(Input(kind, name))
        self.values.append(_fake(self.mode, tensor))
        return len(self.values) - 1

    def module_inputs(self):
        self.params, self.buffers, self.state = {}, {}, {}
        for name, p in self.module.named_parameters():
            self.params[name] = self.add("parameter", name, p)
            self.parameters += p.numel()
        for name, b in self.module.named_buffers():
            self.buffers[name] = self.add("buffer", name, b)
        self.optimizer_inputs()

    def optimizer_inputs(self):
        for name, i in self.params.items() if self.update else ():
            if self.values[i].requires_grad:
                slots = self.fresh_state(self.values[i], self.mode)
                self.state[name] = {k: self.add("optimizer state", f"{name}.{k}", v) for k, v in slots.items()}
        if self.update is _adamw:
            self.step = self.add("optimizer state", "step", torch.empty((), device="meta"))

    def __call__(self, *values):
        """The inputs' values -> outputs; ``self.updates`` tells which of them replace inputs."""
        self.updates, self.gradients = {}, []  # gradients: names of parameters, in the order of the results after the loss
        leaves = [self.given(x, values[x]) if kind == "input" else x for kind, x in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        if self.module is None:
            with torch.no_grad():
                return self.tensors(self.target(*args, **kwargs))
        if not self.train:
            with torch.no_grad():
                return self.tensors(self.forward(values, args, kwargs))
        out = self.loss_value(_loss_of(self.forward(values, args, kwargs), self.loss, args))
        return self.train_step(values, out)

    def loss_value(self, loss):
        return loss

    def given(self, number, value):
        """Input |number| as the user's program sees it."""
        return value

    def forward(self, values, args, kwargs):
        named = {n: values[i] for n, i in (*self.params.items(), *self.buffers.items())}
        return torch.func.functional_call(self.module, named, args, kwargs)

    def train_step(self, values, loss):
        trained = {n: values[i] for n, i in self.params.items() if values[i].requires_grad}
        if not trained or not loss.requires_grad:
            raise TraceError("train=True, but the loss does not depend on any parameter that requires a gradient")
        setup_stacktrace_preservation_hooks_from_tensors([loss])  # marks backward operators with their forward's number
        grads = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
        outputs = [loss]
        with torch.no_grad(), _part("optimizer"):
            for (name, p), g in zip(trained.items(), grads):
                if g is None:
                    continue
                if self.update is None:
                    self.gradients.append(name)
                    outputs.append(g)
                    continue
                state = {k: values[i] for k, i in self.state[name].items()}
                if self.update is _adamw:
                    state["step"] = values[self.step]
                p, state = self.update(p, g, state, 1e-3)
                self.replace(outputs, self.params[name], p)
                for k, i in self.state[name].items():
                    self.replace(outputs, i, state[k])
            if self.update is _adamw:
                self.replace(outputs, self.step, values[self.step] + 1)
        return outputs

    def replace(self, outputs, i, value):
        self.updates[len(outputs)] = i
        outputs.append(value)

    def tensors(self, out):
        leaves = pytree.tree_leaves(out)
        if any(not isinstance(x, (torch.Tensor, int, float, bool, str, type(None))) for x in leaves):
            leaves = [y for x in leaves for y in _tensors_inside(x)]
        return [x for x in leaves if isinstance(x, torch.Tensor)]


def _tensors_inside(value):
    """Tensors of an object that pytree does not know, such as a cache of keys and values."""
    seen, out, stack = set(), [], [value]
    while stack:
        v = stack.pop()
        if isinstance(v, torch.Tensor):
            out.append(v)
        elif id(v) not in seen:
            seen.add(id(v))
            if isinstance(v, dict):
                stack.extend(v.values())
            elif isinstance(v, (list, tuple)):
                stack.extend(v)
            elif hasattr(v, "__dict__") and not isinstance(v, (type, torch.nn.Module)):
                stack.extend(vars(v).values())
    return out


def _functional(program: Program):
    """|program| without mutations: inputs that it writes to appear as further outputs, as AOTAutograd does it."""

    def run(*values):
        off = torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize))
        with off, FunctionalTensorMode():
            inputs = [FunctionalTensor.to_functional(v) for v in values]
            outputs = list(program(*inputs))
            for i, t in enumerate(inputs):
                if torch._functionalize_has_data_mutation(t.elem) and i not in program.updates.values():
                    program.replace(outputs, i, t)
            plain = []
            for t in outputs:
                if isinstance(t, FunctionalTensor):
                    torch._sync(t)
                    t = torch._from_functional_tensor(t.elem)
                plain.append(t.detach() if t.requires_grad else t)
            return plain

    return run


def trace(target, args=(), kwargs=None, train=False, loss=None, optimizer="adamw") -> Traced:
    """Traces |target|, a module or a function, called with |args| and |kwargs| (real, meta or fake tensors; nothing is
    read from them). Inference runs without gradients; with ``train`` the program is one whole step: forward, backward
    and the update of |optimizer| ("adamw" with its moments in the parameter's dtype, "sgd", or None for gradients only).
    Raises TraceError with the user's line."""
    return traced(Program(target, tuple(args), dict(kwargs or {}), train, loss, optimizer))


def traced(program: Program) -> Traced:
    """|program|'s graph. Raises TraceError."""
    from .._compile import _decompositions

    try:
        with warnings.catch_warnings(), program.mode, enable_python_dispatcher(), fx_traceback.preserve_node_meta():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly(check_nan=False), _Lines():
                graph = make_fx(_functional(program), decomposition_table=_decompositions(symbolic=False),
                                _allow_non_fake_inputs=True)(*program.values)
    except (TraceError, ValueError) as e:
        if isinstance(e, TraceError):
            raise
        raise TraceError(f"{type(e).__name__}: {e}", user_frame(traceback.extract_tb(e.__traceback__))) from e
    except Exception as e:  # whatever the user's code raised on the way
        words = str(e).strip().split("\n")[0] or type(e).__name__
        raise TraceError(f"{type(e).__name__}: {words}", user_frame(traceback.extract_tb(e.__traceback__))) from e
    graph.graph.eliminate_dead_code()
    _lines_of_backward(graph.graph)
    return Traced(graph, program.inputs, dict(program.updates), program.parameters)
