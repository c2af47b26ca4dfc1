"""Write docs/api/*.md, the reference of the Python package, from its docstrings.

    python scripts/api_reference.py

Names, arguments and texts come from the installed package; only the order of pages is said here.
The tests ask whether a page differs from what it would write.
"""

import inspect
import re
from pathlib import Path

import tilework as tw
import tilework.needle
import tilework.random

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "api"

# Page: title, one sentence, names. Of what is named here on no page, functions that take `out` are
# elementwise, and the rest is about formulas over pairs.
PAGES = {
    "creation": (
        "New arrays",
        "Arrays from numbers, from other objects, and from nothing.",
        """array asarray from_dlpack empty empty_like zeros zeros_like ones ones_like full full_like
        arange linspace eye tril triu meshgrid""",
    ),
    "manipulation": (
        "Shapes, views and joins",
        "Views rewrite shape and strides and share memory; joins make new arrays.",
        """reshape permute_dims matrix_transpose moveaxis expand_dims squeeze flip broadcast_to
        broadcast_arrays broadcast_shapes as_strided sliding_window_view unstack split concat stack
        repeat tile roll pad diff astype shares_memory""",
    ),
    "reductions": (
        "Reductions and running sums",
        "Over all axes, one, or several; sums lose digits with the logarithm of the count only.",
        """sum prod mean var std max min argmax argmin any all count_nonzero logsumexp softmax
        cumulative_sum cumulative_prod""",
    ),
    "searching": (
        "Searching, sorting and sets",
        "Sorting is stable; NaN comes last; the first of equal elements wins.",
        """where nonzero argwhere sort argsort searchsorted take take_along_axis isin unique_all
        unique_counts unique_inverse unique_values isclose allclose array_equal""",
    ),
    "linear": (
        "Products",
        "Matrix products of every dtype; the linalg extension is not there yet.",
        "matmul tensordot vecdot outer einsum",
    ),
    "dtypes": (
        "Dtypes and constants",
        "The types of elements, how they promote, and the numbers of the standard.",
        """dtype finfo iinfo isdtype can_cast result_type e pi inf nan newaxis bool int8 int16 int32
        int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128""",
    ),
    "devices": (
        "Devices, threads and printing",
        "Where arrays live and how work is shared.",
        """device devices default_device set_default_device get_num_threads set_num_threads
        empty_cache show_config set_printoptions get_printoptions printoptions""",
    ),
    "files": ("Files", "NumPy's formats.", "save load savez savez_compressed"),
    "errors": (
        "Exceptions",
        "Where Python has no exception of its own.",
        "AxisError DeviceError FormulaError",
    ),
}

NEEDLE = "NDArray BackendDevice array empty full cpu cuda cpu_numpy all_devices default_device set_default_device set_edition"


def signature(thing: object) -> str:
    """How it is called, as Python shows it, without `self`."""
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    return re.sub(r"\(\$?self(, /)?(, )?", "(", text)


def body(thing: object) -> str:
    """A docstring with its examples fenced."""
    lines, inside = [], False
    for line in inspect.cleandoc(thing.__doc__ or "").split("\n"):
        if line.startswith(">>>") and not inside:
            lines.append("```python")
            inside = True
        if inside and not line:
            lines.append("```")
            inside = False
        lines.append(line)
    if inside:
        lines.append("```")
    return "\n".join(lines).strip()


def entry(prefix: str, name: str, thing: object) -> str:
    if not (inspect.isroutine(thing) or inspect.isclass(thing)):
        kind = f"`{thing!r}`" if not isinstance(thing, float) else f"`{thing}`"
        return f"## `{prefix}.{name}`\n\n{kind}\n"
    call = "" if inspect.isclass(thing) and issubclass(thing, BaseException) else signature(thing)
    return f"## `{prefix}.{name}{call}`\n\n{body(thing)}\n"


def own(cls: type) -> dict[str, object]:
    """What a class and its bases define: `Array` has its methods from a base."""
    return {name: member for base in reversed(cls.__mro__[:-1]) for name, member in vars(base).items()}


def members(cls: type) -> str:
    """Attributes first, then methods, by name."""
    attributes, methods = [], []
    for name, value in sorted(own(cls).items(), key=lambda member: member[0].lower()):
        if name.startswith("_") or not getattr(value, "__doc__", None):
            continue
        if callable(value) or isinstance(value, staticmethod):
            value = getattr(cls, name)
            methods.append(f"### `{name}{signature(value)}`\n\n{body(value)}\n")
        else:
            attributes.append(f"- `{name}`: {body(value)}\n")
    return "".join(attributes) + "\n" + "\n".join(methods)


def whole(prefix: str, name: str, thing: object) -> str:
    """An entry, with its members if it is a class."""
    inner = "\n" + members(thing) if inspect.isclass(thing) else ""
    return entry(prefix, name, thing) + inner


def page(title: str, sentence: str, parts: list[str]) -> str:
    made = "Made from the docstrings by `scripts/api_reference.py`: change those, not this page."
    return f"# {title}\n\n{sentence}\n\n{made}\n\n" + "\n".join(parts)


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    placed = {name for _, _, names in PAGES.values() for name in names.split()}
    rest = sorted(set(tw._core.__all__) - placed - {"Array"})
    rows = [name for name in rest if "out=None" in signature(getattr(tw, name))]
    pairs = [name for name in rest if name not in rows]
    made = {}
    for file, (title, sentence, names) in PAGES.items():
        parts = [entry("tw", name, getattr(tw, name)) for name in names.split()]
        made[file] = page(title, sentence, parts)
    made["elementwise"] = page(
        "Elementwise functions",
        "One for each row of the table of operations. Operands broadcast and promote; `out=` takes the result.",
        [entry("tw", name, getattr(tw, name)) for name in rows],
    )
    if pairs:
        parts = [whole("tw", name, getattr(tw, name)) for name in pairs]
        made["pairs"] = page("Formulas over pairs", "The matrix is never stored.", parts)
    made["array"] = page("The array", body(tw.Array), [members(tw.Array)])
    made["random"] = page(
        "Random numbers",
        body(tw.random),
        [
            entry("tw.random", "default_rng", tw.random.default_rng),
            body(tw.random.Generator),
            members(tw.random.Generator),
        ],
    )
    made["needle"] = page(
        "needle's array package",
        body(tilework.needle),
        [whole("nd", name, getattr(tilework.needle, name)) for name in NEEDLE.split()],
    )
    order = ["array", "elementwise", *PAGES, *made.keys() - PAGES.keys() - {"array", "elementwise"}]
    order.sort(key=lambda file: (file != "array", file))
    heads = [made[file].split("\n")[0].lstrip("# ") for file in order]
    listed = "".join(f"- [{head}]({file}.md)\n" for file, head in zip(order, heads, strict=True))
    made["index"] = page("Python reference", "`import tilework as tw`, page by page.", [listed])
    return {f"{file}.md": text.rstrip() + "\n" for file, text in made.items()}


def stale() -> list[str]:
    """The pages that differ from what the docstrings say."""
    found, made = written(), pages()
    return sorted(name for name in found | made if found.get(name) != made.get(name))


def written() -> dict[str, str]:
    """The pages as they are in the folder."""
    return {path.name: path.read_text() for path in FOLDER.glob("*.md")}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = pages()
    for name in written().keys() - made.keys():
        (FOLDER / name).unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
