"""cuRAND's device generators on the simulated device: NVIDIA's own numbers, and distributions as they should be."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError

GENERATORS = ("curandStateXORWOW_t", "curandStatePhilox4_32_10_t", "curandStateMRG32k3a_t")

# (seed, subsequence, offset); then six numbers, one uniform float, one uniform double, Poisson numbers of means 3.5 and
# 200: as the original gives them one after the other.
KNOWN = [
    ("curandStateXORWOW_t", (0, 0, 0),
     (3179217846, 1883133293, 2220552389, 674260989, 306521119, 1986458431),
     "0x1.d236a2p-3", "0x1.270ba33c359b6p-3", (6, 192)),
    ("curandStateXORWOW_t", (1234, 1, 3),
     (2308946676, 3475686971, 75263415, 1929890176, 3433179576, 585435514),
     "0x1.827b62p-2", "0x1.8551f56eafec6p-1", (6, 195)),
    ("curandStateXORWOW_t", (1234, 77, 1000),
     (77765795, 2007910389, 1498978577, 2358817348, 1026580963, 1694575534),
     "0x1.96615ap-1", "0x1.c48991fd0e091p-2", (4, 207)),
    ("curandStateXORWOW_t", (244837814094590, 1099511627776, 8589934597),
     (1477602474, 3524439395, 2397251292, 1097204546, 3380375746, 1622399171),
     "0x1.a01f4ep-1", "0x1.750155f8b9962p-1", (5, 202)),
    ("curandStatePhilox4_32_10_t", (0, 0, 0),
     (1713891541, 3781805453, 3159862348, 2600524760, 4175744164, 1555169499),
     "0x1.634aeap-1", "0x1.2fdfedp-5", (0, 193)),
    ("curandStatePhilox4_32_10_t", (1234, 1, 3),
     (253049307, 118660703, 1698527859, 495137217, 2264860335, 738435355),
     "0x1.2c3686p-2", "0x1.9ae7d994p-2", (4, 175)),
    ("curandStatePhilox4_32_10_t", (1234, 77, 1000),
     (1372889015, 189164107, 180448604, 706057894, 3946311724, 856121294),
     "0x1.b4d0ccp-1", "0x1.a3f0069cp-1", (3, 187)),
    ("curandStatePhilox4_32_10_t", (244837814094590, 1099511627776, 8589934597),
     (2598557044, 1385131599, 52466963, 1226860209, 3898039654, 1834305846),
     "0x1.98fc14p-1", "0x1.8b10f2cap-1", (6, 162)),
    ("curandStateMRG32k3a_t", (0, 0, 0),
     (545508615, 1368065476, 1327943825, 3546985268, 951893240, 2290915747),
     "0x1.ec5012p-2", "0x1.6c17e3993f80dp-2", (3, 193)),
    ("curandStateMRG32k3a_t", (1234, 1, 3),
     (2410030135, 1992398857, 2170368389, 1655077947, 420608390, 491297866),
     "0x1.30331cp-5", "0x1.fe1ec94877226p-3", (4, 185)),
    ("curandStateMRG32k3a_t", (1234, 77, 1000),
     (471023508, 3568059602, 1715002752, 4004642345, 327032080, 1146155058),
     "0x1.587fc8p-1", "0x1.a77528f1b6a67p-3", (3, 199)),
    ("curandStateMRG32k3a_t", (244837814094590, 1099511627776, 8589934597),
     (2951866614, 2623477902, 4202845045, 1435552678, 2474772916, 2055766398),
     "0x1.e73bdap-5", "0x1.d2aa57a4fd119p-3", (6, 185)),
]  # fmt: skip

DRAWS = """#include <curand_kernel.h>
template <class State>
__global__ void draws(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                      unsigned *numbers, float *uniform, double *wide, unsigned *poisson) {
  State state;
  curand_init(seed, subsequence, offset, &state);
  for (int i = 0; i < 6; ++i) numbers[i] = curand(&state);
  *uniform = curand_uniform(&state);
  *wide = curand_uniform_double(&state);
  poisson[0] = curand_poisson(&state, 3.5);
  poisson[1] = curand_poisson(&state, 200.0);
}"""


def blank(count: int, dtype: str) -> gp.GPUArray:
    return gp.from_numpy(np.full(count, 0xA5, dtype))


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("state", "start", "numbers", "uniform", "wide", "poisson"), KNOWN)
def test_known_numbers(
    state: str, start: tuple[int, ...], numbers: tuple[int, ...], uniform: str, wide: str, poisson: tuple[int, ...],
    check: bool,
) -> None:  # fmt: skip
    out = blank(6, "uint32"), blank(1, "float32"), blank(1, "float64"), blank(2, "uint32")
    gp.jit(DRAWS, func=f"draws<{state}>", check=check)[1, 1](*start, *out)
    found = [one.to_numpy() for one in out]
    assert found[0].tolist() == list(numbers) and found[3].tolist() == list(poisson)
    assert (float(found[1][0]), float(found[2][0])) == (float.fromhex(uniform), float.fromhex(wide))


SKIPS = """#include <curand_kernel.h>
template <class State>
__global__ void skips(unsigned long long seed, unsigned skip, unsigned *walked, unsigned *jumped) {
  State one, other;
  curand_init(seed, 0, 0, &one);
  curand_init(seed, 0, skip / 2, &other);
  skipahead(skip - skip / 2, &other);
  for (unsigned i = 0; i < skip; ++i) curand(&one);
  for (int i = 0; i < 5; ++i) walked[i] = curand(&one), jumped[i] = curand(&other);
}"""


@pytest.mark.parametrize("state", GENERATORS)
@pytest.mark.parametrize("skip", [0, 1, 2, 3, 5, 1023, 4097])
def test_a_jump_is_as_many_steps(state: str, skip: int) -> None:
    walked, jumped = blank(5, "uint32"), blank(5, "uint32")
    seed = int(np.random.default_rng().integers(1 << 62))
    gp.jit(SKIPS, func=f"skips<{state}>")[1, 1](seed, skip, walked, jumped)
    assert walked.to_numpy().tolist() == jumped.to_numpy().tolist(), seed


PHILOX = """#include <curand_kernel.h>
__global__ void fours(unsigned long long seed, uint4 *fours, unsigned *singles) {
  curandStatePhilox4_32_10_t one, other;
  curand_init(seed, threadIdx.x, threadIdx.x, &one);
  other = one;
  fours[threadIdx.x] = curand4(&one);
  for (int i = 0; i < 4; ++i) singles[4 * threadIdx.x + i] = curand(&other);
}"""


def test_four_at_a_time_are_the_next_four() -> None:
    fours, singles = blank(36, "uint32"), blank(36, "uint32")
    gp.jit(PHILOX)[1, 9](77, fours, singles)
    assert fours.to_numpy().tolist() == singles.to_numpy().tolist()


MOMENTS = """#include <curand_kernel.h>
template <class State>
__global__ void moments(float *normal, double *wide, float *logarithmic, float *uniform, float lambda,
                        unsigned *poisson, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  State state;
  curand_init(99, i, 0, &state);
  normal[2 * i] = curand_normal(&state);
  normal[2 * i + 1] = curand_normal(&state);
  wide[i] = curand_normal_double(&state);
  logarithmic[i] = logf(curand_log_normal(&state, 2.0f, 0.5f));
  uniform[i] = curand_uniform(&state);
  poisson[i] = curand_poisson(&state, lambda);
}"""


@pytest.mark.parametrize("state", GENERATORS)
@pytest.mark.parametrize("mean", [3.0, 300.0, 5000.0])
def test_distributions(state: str, mean: float) -> None:
    n = 4000  # the seed is fixed: so are the moments
    out = (blank(2 * n, "float32"), blank(n, "float64"), blank(n, "float32"), blank(n, "float32"))
    poisson = blank(n, "uint32")
    gp.jit(MOMENTS, func=f"moments<{state}>")[n // 64 + 1, 64](*out, mean, poisson, n)
    normal, wide, logarithmic, uniform = (one.to_numpy().astype("float64") for one in out)
    for values in (normal, wide, (logarithmic - 2) / 0.5, (uniform - 0.5) * 12**0.5):
        assert abs(values.mean()) < 5 / n**0.5 and abs(values.std() - 1) < 0.06
    assert uniform.min() > 0 and uniform.max() <= 1
    assert abs(np.corrcoef(normal[::2], normal[1::2])[0, 1]) < 5 / n**0.5
    counts = poisson.to_numpy().astype("float64")
    assert abs(counts.mean() - mean) < 5 * (mean / n) ** 0.5 and abs(counts.var() / mean - 1) < 0.15


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("curandStateSobol32_t s; out[0] = sizeof s;", "direction vectors come from"),
        ("curandStateScrambledSobol64 *s; out[0] = sizeof s;", "Philox4_32_10_t"),
        ("curandStateMtgp32 *s; out[0] = sizeof s;", "MTGP32 is not there"),
        (
            "curandState s; curand_init(1, 2, 3, &s); out[0] = curand_poisson4(&s, 3.0).x;",
            "curand_poisson\\(\\) four times",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_the_reason(code: str, why: str) -> None:
    source = f"#include <curand_kernel.h>\n__global__ void k(unsigned *out) {{\n  {code}\n}}"
    with pytest.raises(CompileError, match=f"kernel:3:.*{why}"):
        gp.jit(source)
