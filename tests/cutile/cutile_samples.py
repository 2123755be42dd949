"""Kernels in cuTile as their users write them: for the tests of the interpreter, and of launches."""

from __future__ import annotations

from pygpukit.cutile import ct

Constant = ct.Constant


@ct.kernel
def add(x, y, z, TILE: Constant[int]):
    i = ct.bid(0)
    ct.store(z, (i,), ct.load(x, (i,), (TILE,)) + ct.load(y, (i,), (TILE,)))


@ct.kernel
def add_by_places(x, y, z, TILE: Constant[int]):
    at = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(z, at, ct.gather(x, at) + ct.gather(y, at))


@ct.kernel
def transpose(x, y, TM: Constant[int], TN: Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (j, i), ct.transpose(ct.load(x, (i, j), (TM, TN))))


@ct.kernel
def transpose_by_order(x, y, TM: Constant[int], TN: Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (j, i), ct.load(x, (j, i), (TN, TM), order=(1, 0)))


@ct.kernel
def softmax(x, y, COLUMNS: Constant[int]):
    for row in range(ct.bid(0), x.shape[0], ct.num_blocks(0)):
        values = ct.load(x, (row, 0), (1, COLUMNS), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        power = ct.exp(values - ct.max(values, 1, keepdims=True))
        ct.store(y, (row, 0), (power / ct.sum(power, 1, keepdims=True)).astype(y.dtype))


def swizzled(number, rows, columns, GROUP):
    """Blocks that run at a time work on neighbouring tiles."""
    per_group = GROUP * columns
    first = number // per_group * GROUP
    height = min(rows - first, GROUP)
    return first + number % per_group % height, number % per_group // height


@ct.kernel
def matmul(a, b, c, TM: Constant[int], TN: Constant[int], TK: Constant[int]):
    rows, columns = ct.cdiv(a.shape[0], TM), ct.cdiv(b.shape[1], TN)
    i, j = swizzled(ct.bid(0), rows, columns, 4)
    total = ct.full((TM, TN), 0, ct.float32)
    kind = ct.tfloat32 if a.dtype == ct.float32 else a.dtype
    for k in range(ct.num_tiles(a, 1, (TM, TK))):
        left = ct.load(a, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO).astype(kind)
        right = ct.load(b, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO).astype(kind)
        total = ct.mma(left, right, total)
    ct.store(c, (i, j), total.astype(c.dtype))


@ct.kernel
def split_matmul(a, b, c, TILE: Constant[int]):
    i, j, k = ct.bid(0), ct.bid(1), ct.bid(2)
    part = ct.load(a, (i, k), (TILE, TILE), padding_mode=ct.PaddingMode.ZERO) @ ct.load(
        b, (k, j), (TILE, TILE), padding_mode=ct.PaddingMode.ZERO
    )
    rows = i * TILE + ct.arange(TILE, dtype=ct.int32)[:, None]
    columns = j * TILE + ct.arange(TILE, dtype=ct.int32)[None, :]
    ct.atomic_add(c, (rows, columns), part)


@ct.kernel
def locked_sum(x, total, lock, TILE: Constant[int]):
    part = ct.sum(ct.load(x, (ct.bid(0),), (TILE,), padding_mode=ct.PaddingMode.ZERO))
    while ct.atomic_cas(lock, 0, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) == 1:
        pass
    ct.store(total, (0,), ct.load(total, (0,), ()) + part)
    ct.atomic_xchg(lock, 0, 0, memory_order=ct.MemoryOrder.RELEASE)


@ct.kernel
def layer_norm(x, weight, bias, y, eps, TILE: Constant[int]):
    row, n = ct.bid(0), x.shape[1]
    tiles = ct.num_tiles(x, 1, (1, TILE))
    total = ct.zeros((1, TILE), ct.float32)
    for j in range(tiles):
        total += ct.load(x, (row, j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    mean = ct.sum(total, 1, keepdims=True) / n
    squares = ct.zeros((1, TILE), ct.float32)
    for j in range(tiles):
        values = ct.load(x, (row, j), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        inside = j * TILE + ct.arange(TILE, dtype=ct.int32) < n
        centred = ct.where(inside, values - mean, 0)
        squares += centred * centred
    scale = ct.rsqrt(ct.sum(squares, 1, keepdims=True) / n + eps)
    for j in range(tiles):
        values = ct.load(x, (row, j), (1, TILE)).astype(ct.float32)
        result = (values - mean) * scale * ct.load(weight, (j,), (TILE,)) + ct.load(bias, (j,), (TILE,))
        ct.store(y, (row, j), result.astype(y.dtype))


@ct.kernel
def attention(q, k, v, out, scale, TM: Constant[int], TN: Constant[int], D: Constant[int], CAUSAL: Constant[bool]):
    head, block = ct.bid(1), ct.bid(0)
    rows = block * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    columns = ct.arange(TN, dtype=ct.int32)[None, :]
    largest = ct.full((TM, 1), -float("inf"), ct.float32)
    weight, total = ct.zeros((TM, 1), ct.float32), ct.zeros((TM, D), ct.float32)
    queries = ct.load(q, (head, block, 0), (1, TM, D), padding_mode=ct.PaddingMode.ZERO).reshape((TM, D))
    length = k.shape[1]
    stop = ct.cdiv(min((block + 1) * TM, length), TN) if CAUSAL else ct.cdiv(length, TN)
    for j in range(stop):
        keys = ct.load(k, (head, 0, j), (1, D, TN), order=(0, 2, 1), padding_mode=ct.PaddingMode.ZERO)
        scores = ct.mma(queries, keys.reshape((D, TN)), ct.zeros((TM, TN), ct.float32)) * scale
        seen = j * TN + columns < length
        if CAUSAL:
            seen = seen & (rows >= j * TN + columns)
        scores = ct.where(seen, scores, -float("inf"))
        now = max(largest, ct.max(scores, -1, keepdims=True))
        power, old = ct.exp(scores - now), ct.exp(largest - now)
        weight = weight * old + ct.sum(power, -1, keepdims=True)
        values = ct.load(v, (head, j, 0), (1, TN, D), padding_mode=ct.PaddingMode.ZERO).reshape((TN, D))
        total = ct.mma(power.astype(v.dtype), values, total * old)
        largest = now
    ct.store(out, (head, block, 0), (total / weight).astype(out.dtype).reshape((1, TM, D)))


@ct.kernel
def histogram(x, counts, TILE: Constant[int]):
    at = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    value = ct.gather(x, at, padding_value=-1)
    ct.atomic_add(counts, ct.where(value >= 0, value, counts.shape[0]), 1)
