"""Pickles of arrays, with the elements inside and beside them."""

import copy
import pickle

import numpy as np
import pytest

import tilework as tw

NAMES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64
complex128""".split()


def views(name: str) -> list[tw.Array]:
    x = tw.arange(24).astype(name).reshape(2, 3, 4)
    return [x, x.T, x[:, ::2, ::-1], x[1, 2, 3], x[:0], tw.broadcast_to(x[:1], (3, 3, 4)), tw.zeros((0, 2), dtype=name)]


@pytest.mark.parametrize("name", NAMES)
def test_every_protocol(device: tw.device, name: str) -> None:
    for x in views(name):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            y = pickle.loads(pickle.dumps(x, protocol))
            assert y.device == device and y.shape == x.shape and y.dtype == x.dtype
            assert y.tobytes() == x.tobytes()
            assert y.writable and not tw.shares_memory(x, y)
        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(x, 5, buffer_callback=buffers.append)
        for given in (buffers, [bytes(b.raw()) for b in buffers], [bytearray(b.raw()) for b in buffers]):
            y = pickle.loads(data, buffers=given)
            assert y.device == device and y.shape == x.shape and y.dtype == x.dtype
            assert y.tobytes() == x.tobytes()


def test_memory_beside_the_pickle_is_shared(host: tw.device) -> None:
    x = tw.zeros(100_000)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps([x, x[::2]], 5, buffer_callback=buffers.append)
    assert len(data) < 500 and [b.raw().nbytes for b in buffers] == [800_000, 400_000]
    y, half = pickle.loads(data, buffers=buffers)
    y[7] = 5
    assert x[7] == 5 and half.sum() == 0
    # As NumPy does: what was given decides whether it may be written to, but bytes are copied.
    taken = [bytearray(b.raw()) for b in buffers]
    y, half = pickle.loads(data, buffers=taken)
    y[0] = 1
    assert taken[0][:8] == np.float64(1).tobytes()
    fixed = [memoryview(b.raw()).toreadonly() for b in buffers]
    assert not pickle.loads(data, buffers=fixed)[0].writable
    assert pickle.loads(data, buffers=[bytes(b) for b in fixed])[0].writable


def test_elements_at_odd_addresses_and_of_another_number(host: tw.device) -> None:
    x = tw.arange(5.0)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    odd = memoryview(bytearray(b"-" + bytes(buffers[0].raw())))[1:]
    assert pickle.loads(data, buffers=[odd]).tolist() == x.tolist()
    for wrong in (odd[:-1], odd[:-8], bytearray(48)):
        with pytest.raises(ValueError):
            pickle.loads(data, buffers=[wrong])
    with pytest.raises(TypeError):
        pickle.loads(data, buffers=[5])


def test_copies_are_copies(device: tw.device) -> None:
    x = tw.arange(4)
    for y in (copy.copy(x), copy.deepcopy(x)):
        y[0] = 9
    assert x[0] == 0
