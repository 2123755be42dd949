"""Philox4x32-10 and functions of its words in NumPy, bit for bit what kernels/include/philox.cuh computes.

Every operation is rounded on its own and only exactly defined ones are used (+, -, *, /, sqrt, integer arithmetic), so
the results are the same on every machine.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)


def words(seed: int, index: Any, call: int) -> Array:
    """The blocks of four 32-bit words for counters (index, call) under key `seed`: uint32, shape (len(index), 4)."""
    index = np.asarray(index, np.uint64)
    c0, c1 = index & _LOW, index >> _32
    c2, c3 = (np.full(index.shape, half, np.uint64) for half in (call & 0xFFFFFFFF, call >> 32))
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1 = (second >> _32) ^ c1 ^ np.uint64(k0), second & _LOW
        c2, c3 = (first >> _32) ^ c3 ^ np.uint64(k1), first & _LOW
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def joined(blocks: Array) -> Array:
    """The words of each block as two 64-bit words."""
    wide = blocks.astype(np.uint64)
    return wide[..., 0::2] | wide[..., 1::2] << _32


def high_product(a: Array, b: int) -> Array:
    """The upper 64 bits of the 128-bit product of uint64 numbers with b < 2^64."""
    b_low, b_high = np.uint64(b & 0xFFFFFFFF), np.uint64(b >> 32)
    a_low, a_high = a & _LOW, a >> _32
    middle = a_high * b_low + (a_low * b_low >> _32)
    other = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _32) + (other >> _32)


def negative_log(word: Array) -> Array:
    """-ln(word / 2^bits) in float32 for uint32 words, in float64 for uint64; a word of 0 stands for half a step."""
    single = word.dtype == np.uint32
    real, unsigned, bits, digits, bias = (
        (np.float32, np.uint32, 32, 23, 127) if single else (np.float64, np.uint64, 64, 52, 1023)
    )
    terms = 4 if single else 11
    pattern = np.where(word == 0, real(0.5), word.astype(real)).view(unsigned)
    exponent = (pattern >> unsigned(digits)).astype(np.int64) - bias
    fraction = (pattern & unsigned((1 << digits) - 1)) | unsigned(bias << digits)
    mantissa = fraction.view(real)
    upper = mantissa > real(1.4142135623730951)
    mantissa = np.where(upper, mantissa * real(0.5), mantissa)
    s = (mantissa - real(1)) / (mantissa + real(1))
    z = s * s
    log = (s + s) + s * (z * polynomial([2 / (2 * k + 3) for k in range(terms)], z))
    return (bits - exponent - upper).astype(real) * real(0.6931471805599453) - log


def turn(word: Array) -> tuple[Array, Array]:
    """Cosine and sine of word / 2^bits turns, in float32 for uint32 words, in float64 for uint64."""
    single = word.dtype == np.uint32
    real, unsigned, bits = (np.float32, np.uint32, 32) if single else (np.float64, np.uint64, 64)
    terms = (4, 5) if single else (8, 8)
    quarters = (word + unsigned(1 << (bits - 3))) >> unsigned(bits - 2)
    rest = (word - (quarters << unsigned(bits - 2))).view(np.int32 if single else np.int64)
    x = rest.astype(real) * real(1.5707963267948966 / 2.0 ** (bits - 2))
    z = x * x
    sine = x + x * (z * polynomial(_taylor(3, terms[0]), z))
    cosine = real(1) + z * polynomial(_taylor(2, terms[1]), z)
    return (
        np.choose(quarters.astype(np.intp), [cosine, -sine, -cosine, sine]),
        np.choose(quarters.astype(np.intp), [sine, cosine, -sine, -cosine]),
    )


def _taylor(first: int, terms: int) -> list[float]:
    """-1 / first!, 1 / (first + 2)!, ..."""
    from math import factorial

    return [(-1) ** (k + 1) / factorial(first + 2 * k) for k in range(terms)]


def normals(blocks: Array, double: bool) -> Array:
    """Standard normal numbers of each block (Box and Muller 1958): four float32, or two float64."""
    source = joined(blocks) if double else blocks
    log = negative_log(source[..., 0::2])
    length = np.sqrt(log + log)
    cosine, sine = turn(source[..., 1::2])
    return np.stack([length * cosine, length * sine], axis=-1).reshape(source.shape)


def exp_units(x: Array) -> Array:
    """exp(x) for float32 x <= 0 as uint64 in units of 2^-40: sums of these do not depend on their order."""
    far = ~(x > np.float32(-64))
    x = np.where(far, np.float32(0), x)
    n = np.rint(x * np.float32(1.4426950408889634))
    r = (x + n * np.float32(-0.693359375)) + n * np.float32(2.12194440e-4)
    value = np.float32(1) + r * polynomial([1, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040], r)
    mantissa = (value * np.float32(16777216)).astype(np.uint64)
    shift = 16 + n.astype(np.int64)
    left, right = np.clip(shift, 0, None).astype(np.uint64), np.clip(-shift, 0, 63).astype(np.uint64)
    return np.where(far | (shift <= -32), np.uint64(0), mantissa << left >> right)


def polynomial(coefficients: list[float], z: Array) -> Array:
    """The sum of coefficients[i] * z^i in z's type, by Horner's rule."""
    real = z.dtype.type
    total = np.full_like(z, real(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        total = total * z + real(coefficient)
    return total
