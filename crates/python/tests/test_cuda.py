"""What only CUDA devices have: memory of other libraries without a copy, in the order of streams.

Runs where there is a card; what needs PyTorch or CuPy is skipped where they are missing.
"""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilework as tw

card = pytest.mark.skipif(not tw.cuda.is_available(), reason=str(tw.cuda.why_not()))
NAMES = """bool int8 int16 int32 int64 uint8 float16 float32 float64 complex64 complex128""".split()


@pytest.mark.skipif(tw.cuda.is_available(), reason="there is a card")
def test_without_a_card_there_is_a_reason() -> None:
    why = tw.cuda.why_not()
    assert why
    for function in (tw.cuda.synchronize, tw.cuda.memory_info, tw.cuda.empty_cache):
        with pytest.raises(tw.DeviceError) as raised:
            function()
        assert why in str(raised.value)


def test_only_cards_have_memory_of_their_own() -> None:
    for function in (tw.cuda.synchronize, tw.cuda.memory_info, tw.cuda.empty_cache):
        with pytest.raises(ValueError, match="cpu is not a CUDA device"):
            function("cpu")
    assert not hasattr(tw.zeros(3), "__cuda_array_interface__")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


def on_card(values: Any) -> tw.Array:
    return tw.asarray(np.asarray(values), device="cuda")


def address(x: tw.Array) -> int:
    return x.__cuda_array_interface__["data"][0]


class OnlyInterface:
    """Another library's array that offers the CUDA array interface and nothing else."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.__cuda_array_interface__ = inner.__cuda_array_interface__


@card
def test_memory_is_counted_and_given_back() -> None:
    tw.cuda.empty_cache()
    before = tw.cuda.memory_info()
    x = tw.zeros(1 << 26, dtype="uint8", device="cuda")
    during = tw.cuda.memory_info()
    assert before.used + (1 << 26) <= during.used <= during.reserved <= during.total
    del x
    tw.cuda.synchronize()
    assert tw.cuda.memory_info().used == before.used
    tw.cuda.empty_cache()
    assert tw.cuda.memory_info().reserved < during.reserved


@card
def test_without_memory_is_an_error_and_the_device_stays_usable() -> None:
    for _ in range(3):
        with pytest.raises(MemoryError, match="cuda:0"):
            tw.zeros(1 << 44, device="cuda")
        assert float(tw.ones(1000, device="cuda").sum()) == 1000


@card
def test_what_was_gathered_for_a_refused_request_is_given_back() -> None:
    lost = []
    for _ in range(20):
        tw.cuda.empty_cache()
        before = tw.cuda.memory_info()
        # Of the driver's pool, that is: more than the card has, not more than it would try to have.
        with pytest.raises(MemoryError, match="are free"):
            tw.zeros(2 * before.total, dtype="int8", device="cuda")
        after = tw.cuda.memory_info()
        assert after.reserved <= before.reserved + (64 << 20)
        # Other programs take memory of the card meanwhile, but not each time.
        lost.append(before.free - after.free)
        if lost[-1] <= 64 << 20:
            break
    assert lost[-1] <= 64 << 20, lost


@card
def test_a_kind_is_its_first_device() -> None:
    assert tw.device("cuda") == tw.device("cuda:0") == tw.zeros(2, device="cuda").device


@card
def test_memory_of_the_host_is_no_target() -> None:
    x, n = tw.ones(3, device="cuda"), np.ones(3)
    for write in (lambda: np.add(x, x, out=n), lambda: tw.add(x, x, out=n), lambda: tw.sum(x, out=n[:1])):
        with pytest.raises((tw.DeviceError, TypeError)):
            write()
    assert n.tolist() == [1, 1, 1] and float(x.sum()) == 3


@card
@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize("name", NAMES)
def test_dlpack_shares_memory_both_ways(library: str, name: str) -> None:
    theirs = pytest.importorskip(library)
    n = np.arange(24).reshape(2, 3, 4).astype(name)
    x = on_card(n)
    views = [(x, n), (x.T, n.T), (x[:, 1:, ::2], n[:, 1:, ::2]), (x[:0], n[:0]), (x[1, 2, 3], n[1, 2, 3])]
    for view, wanted in views:
        given = theirs.from_dlpack(view)
        pointer = given.data_ptr() if library == "torch" else given.data.ptr
        host = given.cpu().numpy() if library == "torch" else given.get()
        np.testing.assert_array_equal(host, wanted)
        assert view.size == 0 or pointer == address(view)
        back = tw.from_dlpack(given)
        assert back.device == "cuda:0" and back.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(back), wanted)
        assert view.size == 0 or address(back) == address(view)
    # What is written on one side is seen on the other.
    given = theirs.from_dlpack(x)
    given[0, 0, 0] = 1
    assert x[0, 0, 0] == 1
    x[0, 0, 0] = 0
    assert given[0, 0, 0] == 0


@card
def test_elements_that_stand_for_one_another_are_not_lent_for_writing() -> None:
    x = on_card(np.arange(6.0))
    for view in (tw.broadcast_to(x[:1], (3,)), tw.sliding_window_view(x, 3)):
        assert view.__cuda_array_interface__["data"][1] and not view.writable
        with pytest.raises(BufferError, match="read-only"):
            view.__dlpack__()
    for view in (x, x[::2], x[:0], tw.broadcast_to(x, (0, 6))):
        assert not view.__cuda_array_interface__["data"][1] and view.writable


@card
def test_bfloat16_goes_by_dlpack(torch: Any) -> None:
    t = torch.arange(8, device="cuda").to(torch.bfloat16)
    x = tw.from_dlpack(t)
    assert x.dtype == tw.bfloat16 and torch.from_dlpack(x).data_ptr() == t.data_ptr()
    assert float((x + x).astype("float32").sum()) == 56


@card
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_the_array_interface_shares_memory_both_ways(library: str) -> None:
    theirs = pytest.importorskip(library)
    n = np.arange(12.0, dtype="float32").reshape(3, 4)
    x = on_card(n)
    given = theirs.as_tensor(x) if library == "torch" else theirs.asarray(x)
    pointer = given.data_ptr() if library == "torch" else given.data.ptr
    assert pointer == address(x)
    for view in (given, given.T, given[1:, ::2]):
        back = tw.asarray(OnlyInterface(view))
        host = view.cpu().numpy() if library == "torch" else view.get()
        np.testing.assert_array_equal(np.asarray(back), host)
        start = view.data_ptr() if library == "torch" else view.data.ptr
        assert back.device == "cuda:0" and address(back) == start
        assert address(tw.asarray(view)) == start
    assert np.asarray(tw.asarray(OnlyInterface(given[:0]))).shape == (0, 4)
    assert address(x[:0]) == 0


@card
def test_readers_of_the_array_interface_need_not_know_streams(torch: Any) -> None:
    """PyTorch does not look at the stream that the interface names."""
    stream = torch.cuda.Stream()
    x = tw.ones(1 << 24, device="cuda", dtype="float32")
    for round in range(10):
        y = x
        for _ in range(20):
            y = y + x
        with torch.cuda.stream(stream):
            t = torch.as_tensor(y, device="cuda")
            assert t.min().item() == t.max().item() == 21, round


@card
@pytest.mark.parametrize("length", [1 << 18, 1 << 23])
@pytest.mark.parametrize("way", ["as_tensor", "from_dlpack"])
def test_memory_is_not_used_again_while_others_read_it(torch: Any, way: str, length: int) -> None:
    """In streams of their own, which nobody waits for; small blocks and large ones are kept in different ways.

    Several, since a card may do the work of two streams in turn.
    """
    for round in range(6):
        stream = torch.cuda.Stream()
        x = tw.full((length,), 5, dtype="float32", device="cuda")
        read = torch.empty(length, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            t = torch.as_tensor(x, device="cuda") if way == "as_tensor" else torch.from_dlpack(x)
            torch.cuda._sleep(50_000_000)
            read.copy_(t)
            del t, x
        others = [tw.full((length,), -1, dtype="float32", device="cuda") for _ in range(4)]
        tw.cuda.synchronize()
        torch.cuda.synchronize()
        assert read.min().item() == read.max().item() == 5, round
        del others


@card
def test_steps_backwards_need_a_copy() -> None:
    """DLPack has words for them, but PyTorch ends the process when it is given some of a card."""
    x = on_card(np.arange(6).reshape(2, 3))
    for view in (x[::-1], x[:, ::-2]):
        with pytest.raises(BufferError, match="copy the array first"):
            view.__dlpack__()
        np.testing.assert_array_equal(np.asarray(tw.from_dlpack(view.copy())), np.asarray(view))
    assert tw.from_dlpack(x[:1][::-1]).shape == (1, 3)


@card
def test_memory_of_a_card_stays_there(torch: Any) -> None:
    t = torch.ones(5, device="cuda")
    x = tw.asarray(t)
    assert x.device == "cuda:0" and address(x) == t.data_ptr()
    assert (x + t).device == "cuda:0" and tw.sum(t).device == "cuda:0"
    with pytest.raises(tw.DeviceError, match="to_device"):
        tw.ones(5) + t
    moved = tw.asarray(t, device="cpu")
    assert moved.device == "cpu" and float(moved.sum()) == 5
    with pytest.raises((ValueError, BufferError)):
        tw.from_dlpack(t, device="cpu", copy=False)
    own = tw.asarray(t, copy=True)
    own[...] = 7
    assert float(t.sum()) == 5
    with pytest.raises(ValueError):
        tw.asarray(np.ones(3), device="cuda", copy=False)


@card
def test_memory_lives_as_long_as_it_is_used(torch: Any) -> None:
    x = tw.arange(1 << 20, dtype="int32", device="cuda")
    given = torch.from_dlpack(x)[10:]
    t = torch.arange(1 << 20, dtype=torch.int32, device="cuda")
    taken = tw.from_dlpack(t)[10:]
    del x, t
    gc.collect()
    tw.zeros(1 << 20, dtype="int32", device="cuda")
    torch.zeros(1 << 20, dtype=torch.int32, device="cuda")
    wanted = sum(range(10, 1 << 20))
    assert int(given.sum()) == wanted and int(taken.sum()) == wanted


@card
@pytest.mark.parametrize("side", [False, True])
def test_streams_are_ordered(torch: Any, side: bool) -> None:
    """Each library reads what the other has only begun to write, in default and other streams."""
    stream = torch.cuda.Stream() if side else torch.cuda.default_stream()
    for round in range(20):
        with torch.cuda.stream(stream):
            t = torch.zeros(1 << 24, device="cuda")
            for _ in range(10):
                t += 1
            x = tw.from_dlpack(t)
            y = x * 2
            for _ in range(10):
                y = y + x
            u = torch.from_dlpack(y)
            # All of it is 120; a sum in float64 would hide nothing.
            assert u.min().item() == u.max().item() == 120, round
            del x, y, u, t


@card
def test_writes_in_the_default_stream_are_in_step(torch: Any) -> None:
    """Shared memory that both sides write in turn, without a word about it."""
    x = tw.zeros(1 << 22, device="cuda", dtype="float32")
    t = torch.from_dlpack(x)
    for _ in range(50):
        t += 1
        x += 1
    assert t.min().item() == t.max().item() == 100
    assert float(x.min()) == float(x.max()) == 100


REPEAT = """
import hashlib
import numpy as np
import tilework as tw
n = np.random.default_rng(3).standard_normal(1_000_003).astype("float32")
block = tw.zeros(n.size + 64, dtype="float32", device="cuda")
for shift in (0, 1, 7):
    x = block[shift : shift + n.size]
    x[...] = tw.asarray(n, device="cuda")
    q = x[:1_000_000].reshape((1000, 1000))
    results = [
        x.sum(), x.mean(), tw.var(x), tw.cumulative_sum(x), tw.sort(x), tw.exp(x) * x, q.sum(axis=0),
        q.sum(axis=1), q @ q.T, q[:, :64].T @ q[:, :64], q @ q[0], tw.logsumexp(x),
    ]
    # Formulas of threads, on tensor cores, of few rows, and as filters.
    for dim, rows in ((3, 20_000), (40, 20_000), (3, 50)):
        p = x[: 20_000 * dim].reshape((20_000, dim))
        d2 = tw.Vi(p[:rows]).sqdist(tw.Vj(p)) / 64
        results += [(-d2).exp().sum(axis=1), (-d2).logsumexp(axis=1), d2.argKmin(5, axis=1)]
        results += [((-d2).exp() * tw.Vj(p)).sum(axis=1)]
    print(hashlib.sha256(b"".join(np.asarray(r).tobytes() for r in results)).hexdigest())
"""


@card
def test_repeats_have_the_same_bits_in_every_process() -> None:
    """Wherever the data lie."""

    def run() -> list[str]:
        command = [sys.executable, "-c", REPEAT]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()

    found = {*run(), *run()}
    assert len(found) == 1


@card
def test_eight_threads_at_once() -> None:
    def work(seed: int) -> None:
        n = np.random.default_rng(seed).random((64, 65), dtype=np.float32)
        x = on_card(n)
        for _ in range(50):
            y = (x * 2 + 1).T.copy()
            np.testing.assert_array_equal(np.asarray(y), (n * 2 + 1).T)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
