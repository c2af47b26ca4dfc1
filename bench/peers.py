"""Runs rows of the benchmark with NumPy, PyTorch and tilework, on orders from `tilework bench`.

One order a line on standard input, one answer a line on standard output:

    versions            the libraries that are there
    row NAME            makes the operands of the row; answers who knows it
    time WHO SECONDS    the seconds that one call takes, timed over about that long
    end                 the end

A row's name has four words: operation, dtype, shape, variant. A library that is not installed does
not appear in the answers, and the table says "not checked".
"""

import importlib
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

# Files beside this one are no libraries, whatever their names.
del sys.path[0]

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 2


def optional(name: str) -> ModuleType | None:
    """The module, or nothing where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


np = optional("numpy")
torch = optional("torch")
tw = optional("tilework")
special = optional("scipy.special")
if torch:
    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
if tw:
    tw.set_num_threads(THREADS)

LIBRARIES = {"tilework-python": tw, "numpy": np, "torch": torch}
Call = Callable[[], object]


def operand(op: str, dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """The numbers of a row as a NumPy array, in the range that `tilework bench` draws from."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("int"):
        return rng.integers(-9, 10, shape).astype(dtype)
    low, high = (0.1, 4.0) if op in ("log", "pow") else (-4.0, 4.0)
    drawn = "float64" if dtype == "float64" else "float32"
    x = rng.random(shape, dtype=drawn) * (high - low) + low
    return x.astype(drawn if dtype == "bfloat16" else dtype)


def convert(library: str, x: Any, dtype: str) -> Any:
    """The array in a library's own memory, so that each has the pages it would have."""
    if library == "numpy":
        return x
    if library == "torch":
        return torch.from_numpy(x).clone().to(getattr(torch, dtype))
    return tw.asarray(x, copy=True).astype(getattr(tw, dtype))


class NotKnown(Exception):
    """The library has no such operation or dtype."""


def sizes(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A product's batch and the shapes of its operands."""
    *batch, m, k, n = shape
    return tuple(batch), (m, k), (k, n)


def matmul(library: str, dtype: str, shape: tuple[int, ...], variant: str) -> Call:
    """A product; a transposed operand is a view."""
    if library == "numpy" and dtype == "bfloat16":
        raise NotKnown
    batch, left, right = sizes(shape)
    matrices = []
    for seed, (rows, columns), transposed in ((1, left, variant[0] == "t"), (2, right, variant[1] == "t")):
        inner = (columns, rows) if transposed else (rows, columns)
        x = convert(library, operand("matmul", dtype, (*batch, *inner), seed), dtype)
        matrices.append(x.swapaxes(-1, -2) if transposed and library == "numpy" else x.mT if transposed else x)
    a, b = matrices
    return lambda: a @ b


def axis_of(variant: str) -> int | None:
    """The axis that a variant names."""
    return None if variant == "all" else int(variant.removeprefix("axis"))


def into(call: Callable[..., object], library: str, operands: list[Any], variant: str) -> Call:
    """A call with a new result, or into one that exists."""
    if variant != "out":
        return lambda: call(*operands)
    out = {"numpy": np, "torch": torch, "tilework-python": tw}[library].zeros_like(operands[0])
    return lambda: call(*operands, out=out)


MAPS: dict[str, dict[str, str]] = {
    # Where a library's name differs from the row's.
    "torch": {"multiply": "mul"},
    "numpy": {"pow": "power"},
    "tilework-python": {},
}


def mapped(library: str, op: str) -> Callable[..., object]:
    """An elementwise function."""
    if library == "numpy" and op in ("sigmoid", "erf"):
        if not special:
            raise NotKnown
        return special.expit if op == "sigmoid" else special.erf
    return getattr(LIBRARIES[library], MAPS[library].get(op, op))


def copied(library: str, view: Any, variant: str) -> Call:
    """A compact copy of a view."""
    if variant == "out":
        if library == "torch":
            out = torch.empty(view.shape, dtype=view.dtype)
            return lambda: out.copy_(view)
        if library == "numpy":
            out = np.zeros(view.shape, dtype=view.dtype)
            return lambda: np.copyto(out, view)
        out = tw.zeros(view.shape, dtype=view.dtype)
        return lambda: out.__setitem__(..., view)
    if library == "torch":
        return lambda: view.clone(memory_format=torch.contiguous_format)
    return view.copy if library == "numpy" else lambda: tw.asarray(view, copy=True)


def build(library: str, op: str, dtype: str, shape: tuple[int, ...], variant: str) -> Call:
    """The call of a row."""
    if op == "matmul":
        return matmul(library, dtype, shape, variant)
    lib = LIBRARIES[library]

    def make(shape: tuple[int, ...] = shape, seed: int = 1) -> Any:
        x = operand(op, dtype, shape, seed)
        return convert(library, np.round(x) if variant == "few" else x, dtype)

    def picks() -> Any:
        return convert(library, np.random.default_rng(3).permutation(shape[0]), "int64")

    x = make()
    if op in ("add", "multiply", "pow"):
        return into(mapped(library, op), library, [x, make(seed=2)], variant)
    if op in ("exp", "log", "tanh", "sin", "sigmoid", "erf"):
        return into(mapped(library, op), library, [x], variant)
    if op == "copy":
        return copied(library, x, variant)
    if op == "cast":
        to = getattr(lib, variant)
        return (lambda: x.to(to)) if library == "torch" else (lambda: x.astype(to))
    if op in ("add_row", "add_column"):
        line = make((shape[1],) if op == "add_row" else (shape[0], 1), seed=2)
        return lambda: x + line
    if op == "add_steps":
        y = make(seed=2)
        return lambda: x[::2] + y[::2]
    if op == "add_transposed":
        return lambda: x + x.T
    if op == "transpose":
        return copied(library, x.T, variant)
    if op == "channels_last":
        view = x.transpose(0, 2, 3, 1) if library == "numpy" else x.permute(0, 2, 3, 1) if library == "torch" else tw.permute_dims(x, (0, 2, 3, 1))
        return copied(library, view, variant)
    if op == "windows":
        return windows(library, x)
    if op == "concat":
        y = make(seed=2)
        return (lambda: lib.concatenate((x, y))) if library != "tilework-python" else (lambda: tw.concat((x, y)))
    if op == "pad":
        if library == "torch":
            return lambda: torch.nn.functional.pad(x, (1, 1, 1, 1))
        return lambda: lib.pad(x, 1)
    if op in ("take", "take_rows"):
        chosen = picks()
        return lambda: x[chosen]
    if op == "put":
        chosen, y = picks(), make(seed=2)
        return lambda: x.__setitem__(chosen, y)
    if op in ("nonzero", "mask_take", "mask_put"):
        mask = x > 0
        if op == "nonzero":
            return lambda: lib.nonzero(mask)
        return (lambda: x[mask]) if op == "mask_take" else (lambda: x.__setitem__(mask, 1.0))
    if op == "cumulative_sum":
        axis = axis_of(variant)
        return (lambda: tw.cumulative_sum(x, axis=axis)) if library == "tilework-python" else (lambda: lib.cumsum(x, axis))
    if op in ("sum", "max", "mean", "var", "argmax"):
        return reduced(library, op, x, axis_of(variant))
    if op in ("sort", "argsort"):
        return lambda: getattr(lib, op)(x)
    if op == "unique":
        return (lambda: tw.unique_values(x)) if library == "tilework-python" else (lambda: lib.unique(x))
    raise NotKnown


def windows(library: str, x: Any) -> Call:
    """im2col of 3x3 windows."""
    if library == "torch":
        return lambda: x.unfold(2, 3, 1).unfold(3, 3, 1).permute(0, 2, 3, 1, 4, 5).contiguous()
    if library == "numpy":
        view = np.lib.stride_tricks.sliding_window_view
        return lambda: view(x, (3, 3), (2, 3)).transpose(0, 2, 3, 1, 4, 5).copy()
    n, c, h, w = x.shape
    shape = (n, h - 2, w - 2, c, 3, 3)
    strides = tuple(4 * step for step in (c * h * w, w, 1, h * w, w, 1))
    return lambda: tw.asarray(tw.as_strided(x, shape, strides), copy=True)


def reduced(library: str, op: str, x: Any, axis: int | None) -> Call:
    """A reduction."""
    lib = LIBRARIES[library]
    if library != "torch":
        return lambda: getattr(lib, op)(x, axis=axis)
    if op == "var":
        return lambda: torch.var(x, dim=axis, correction=0)
    if op == "max" and axis is not None:
        return lambda: torch.amax(x, dim=axis)
    return (lambda: getattr(torch, op)(x)) if axis is None else (lambda: getattr(torch, op)(x, dim=axis))


def timed(call: Call, seconds: float) -> float:
    """Seconds for one call, over as many as fill the time, after one that warms up."""
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    times = int(seconds / max(once, 1e-9))
    if times < 2:
        return once
    repeat = range(times)
    start = time.perf_counter()
    for _ in repeat:
        call()
    return (time.perf_counter() - start) / times


def rest() -> None:
    """Waits for threads that look for more work, some for a fifth of a second, to go to sleep.

    They would take a core from whoever is timed next.
    """
    for _ in range(100):
        spent = time.process_time()
        time.sleep(0.005)
        if time.process_time() - spent < 0.001:
            break


def main() -> None:
    """Takes orders until the end."""
    calls: dict[str, Call] = {}
    for line in sys.stdin:
        order, *words = line.split()
        if order == "end":
            break
        if order == "versions":
            names = [f"{name} {library.__version__}" if library else f"{name} not checked" for name, library in LIBRARIES.items()]
            print(", ".join(names), flush=True)
        elif order == "row":
            calls.clear()
            op, dtype, shape, variant = words
            for library in (name for name, module in LIBRARIES.items() if module and np):
                try:
                    calls[library] = build(library, op, dtype, tuple(map(int, shape.split("x"))), variant)
                    calls[library]()
                except (NotKnown, AttributeError, TypeError, ValueError, RuntimeError) as error:
                    calls.pop(library, None)
                    print(f"{line.strip()}: {library}: {error!r}", file=sys.stderr)
            print(*calls, flush=True)
        elif order == "time":
            seconds = timed(calls[words[0]], float(words[1]))
            rest()
            print(seconds, flush=True)


if __name__ == "__main__":
    main()
