"""The standard's namespace, name by name: presence, and signatures as `inspect` shows them.

The table is that of the array API standard 2025.12. A function of ours may take more keywords
(`out=`), and keywords by their place where NumPy does; never fewer, other or differently ordered arguments.
"""

import inspect

import numpy as np
import pytest

import tilework as tw

FUNCTIONS = """
abs(x, /)
acos(x, /)
acosh(x, /)
add(x1, x2, /)
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
argsort(x, /, *, axis=-1, descending=False, stable=True)
asarray(obj, /, *, dtype=None, device=None, copy=None)
asin(x, /)
asinh(x, /)
astype(x, dtype, /, *, copy=True, device=None)
atan(x, /)
atan2(x1, x2, /)
atanh(x, /)
bitwise_and(x1, x2, /)
bitwise_invert(x, /)
bitwise_left_shift(x1, x2, /)
bitwise_or(x1, x2, /)
bitwise_right_shift(x1, x2, /)
bitwise_xor(x1, x2, /)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
ceil(x, /)
clip(x, /, min=None, max=None)
concat(arrays, /, *, axis=0)
conj(x, /)
copysign(x1, x2, /)
cos(x, /)
cosh(x, /)
count_nonzero(x, /, *, axis=None, keepdims=False)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
divide(x1, x2, /)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
equal(x1, x2, /)
exp(x, /)
expand_dims(x, /, axis)
expm1(x, /)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
finfo(type, /)
flip(x, /, *, axis=None)
floor(x, /)
floor_divide(x1, x2, /)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
greater(x1, x2, /)
greater_equal(x1, x2, /)
hypot(x1, x2, /)
iinfo(type, /)
imag(x, /)
isdtype(dtype, kind)
isfinite(x, /)
isin(x1, x2, /, *, invert=False)
isinf(x, /)
isnan(x, /)
less(x1, x2, /)
less_equal(x1, x2, /)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
log(x, /)
log10(x, /)
log1p(x, /)
log2(x, /)
logaddexp(x1, x2, /)
logical_and(x1, x2, /)
logical_not(x, /)
logical_or(x1, x2, /)
logical_xor(x1, x2, /)
matmul(x1, x2, /)
matrix_transpose(x, /)
max(x, /, *, axis=None, keepdims=False)
maximum(x1, x2, /)
mean(x, /, *, axis=None, keepdims=False)
meshgrid(*arrays, indexing='xy')
min(x, /, *, axis=None, keepdims=False)
minimum(x1, x2, /)
moveaxis(x, source, destination, /)
multiply(x1, x2, /)
negative(x, /)
nextafter(x1, x2, /)
nonzero(x, /)
not_equal(x1, x2, /)
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
permute_dims(x, /, axes)
positive(x, /)
pow(x1, x2, /)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
real(x, /)
reciprocal(x, /)
remainder(x1, x2, /)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis=None)
round(x, /)
searchsorted(x1, x2, /, *, side='left', sorter=None)
sign(x, /)
signbit(x, /)
sin(x, /)
sinh(x, /)
sort(x, /, *, axis=-1, descending=False, stable=True)
sqrt(x, /)
square(x, /)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
subtract(x1, x2, /)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
tan(x, /)
tanh(x, /)
tensordot(x1, x2, /, *, axes=2)
tile(x, repetitions, /)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
trunc(x, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
unstack(x, /, *, axis=0)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
vecdot(x1, x2, /, *, axis=-1)
where(condition, x1, x2, /)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
""".split("\n")[1:-1]

CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]

DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
complex64 complex128""".split()

ATTRIBUTES = ["dtype", "device", "mT", "ndim", "shape", "size", "T"]

METHODS = """__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__
__dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__
__invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__
__pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device
__radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__ __rmatmul__ __rand__
__ror__ __rxor__ __rlshift__ __rrshift__
__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __ipow__ __imod__ __imatmul__ __iand__
__ior__ __ixor__ __ilshift__ __irshift__""".split()

METHOD_SIGNATURES = {
    "__array_namespace__": "(self, /, *, api_version=None)",
    "__dlpack__": "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
    "__dlpack_device__": "(self, /)",
    "to_device": "(self, device, /, *, stream=None)",
}

# What NumPy users reach for beyond the standard.
EXTRAS = """allclose argwhere array array_equal as_strided device devices default_device dtype einsum
empty_cache erf exp2 get_num_threads get_printoptions isclose load logsumexp outer pad printoptions relu save
savez savez_compressed set_default_device set_num_threads set_printoptions shares_memory
show_config sigmoid sliding_window_view softmax split Array DeviceError FormulaError float16
bfloat16 random cuda""".split()


def parameters(text: str) -> list[inspect.Parameter]:
    """The parameters of a signature that is written as text."""
    scope: dict[str, object] = {}
    exec(f"def f{text}: pass", scope)
    return list(inspect.signature(scope["f"]).parameters.values())


@pytest.mark.parametrize("line", FUNCTIONS, ids=lambda line: line.split("(")[0])
def test_function(line: str) -> None:
    name, rest = line.split("(", 1)
    ours = list(inspect.signature(getattr(tw, name)).parameters.values())
    # NumPy's own arguments may come on top.
    more = {"out", "order", "decimals", "method"} | ({"kind"} if "sort" in name else set())
    ours = [p for p in ours if p.name not in more]
    theirs = parameters("(" + rest)
    fixed = [p for p in theirs if p.kind != p.KEYWORD_ONLY]
    # Of these the place is the standard's, of keywords the name; defaults may come on top.
    assert [(p.name, p.kind) for p in ours[: len(fixed)]] == [(p.name, p.kind) for p in fixed]
    assert {p.name for p in ours} == {p.name for p in theirs}
    kinds = {p.name: p.kind for p in ours}
    defaults = {p.name: p.default for p in ours}
    for p in theirs:
        assert p.default in (p.empty, defaults[p.name])
        assert p.kind == kinds[p.name] or p.kind == p.KEYWORD_ONLY and kinds[p.name] == p.POSITIONAL_OR_KEYWORD


SPELLINGS = """
sum(x, 0) :: mean(x, 1) :: max(x, 0) :: min(x, 1) :: prod(x, 0, "float32") :: any(x, 0) :: all(x, 1) :: std(x, 0) :: var(x, 1)
argmax(x, 1) :: argmin(x, 0) :: sort(x, 0) :: argsort(x, 0) :: concat([x, x], 1) :: stack([x, x], 1) :: flip(x, 1)
roll(x, 1, 0) :: repeat(x, 2, 0) :: take(x, [0], 1) :: take_along_axis(x, argsort(x, 1), 1) :: tensordot(x, x, 2)
tril(x, 1) :: triu(x, -1) :: zeros((2,), "int8") :: ones((2,), "int8") :: full(2, 1, "int8") :: zeros_like(x, "int8")
ones_like(x, "int8") :: full_like(x, 3, "int8") :: asarray([1], "int8") :: arange(0, 3, 1, "int8") :: eye(3, 3, 1, "int8")
linspace(0, 1) :: linspace(0, 1, 4, False) :: squeeze(x[None]) :: searchsorted(x[0], x[1], "right")
diff(x, 1) :: diff(x, 2, 0) :: isclose(x, x, 1e-3, 1e-3) :: reshape(x, (3, 2), "F") :: split(x, 2, 0)[1] :: round(x, 1)
"""


@pytest.mark.parametrize("call", [call.strip() for line in SPELLINGS.split("\n") for call in line.split("::") if call])
def test_arguments_may_stand_where_numpy_has_them(call: str) -> None:
    n = np.asarray([[2.5, 0.0, 1.25], [0.5, 3.0, 1.0]])
    theirs = eval(call, {**vars(np), "x": n})
    ours = eval(call, {**vars(tw), "x": tw.asarray(n)})
    assert ours.dtype == str(theirs.dtype) and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", CONSTANTS + DTYPES + EXTRAS)
def test_name(name: str) -> None:
    assert hasattr(tw, name)


@pytest.mark.parametrize("name", ATTRIBUTES + METHODS)
def test_array_has(name: str) -> None:
    assert hasattr(tw.Array, name)


@pytest.mark.parametrize("name, text", METHOD_SIGNATURES.items())
def test_method_signature(name: str, text: str) -> None:
    found = list(inspect.signature(getattr(tw.Array, name)).parameters.values())
    assert [(p.name, p.kind, p.default) for p in found] == [
        (p.name, p.kind, p.default) for p in parameters(text)
    ]


def test_every_function_has_a_docstring_and_a_signature() -> None:
    for name in tw._core.__all__:
        found = getattr(tw, name)
        if inspect.isroutine(found):
            assert found.__doc__, name
            inspect.signature(found)


def test_info() -> None:
    info = tw.__array_namespace_info__()
    assert tw.__array_api_version__ == "2025.12"
    assert tw.asarray(1).__array_namespace__(api_version="2025.12") is tw
    assert info.capabilities()["max dimensions"] == 64
    assert info.default_dtypes()["real floating"] == tw.float64
    assert set(info.dtypes()) == set(DTYPES)
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64", "complex128"}
    assert info.default_device() in info.devices()
    assert isinstance(info.devices(), tuple)
    with pytest.raises(ValueError):
        tw.asarray(1).__array_namespace__(api_version="1999.12")
