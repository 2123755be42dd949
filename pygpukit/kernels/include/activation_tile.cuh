// activation_tile.cuh: activations of tiles of float that become 16-bit floats, all by one formula:
// max(x, least) - y c p(c) e, where y = |x|, e = 2^(y (e0 + e1 y + e2 y^2)), c = 1 / (1 + c0 y + c1 e).
//
// The coefficients are in pygpukit/ops/matmul/fused_tile.py. What is taken off is y times the logistic function of -y, or
// y times the normal distribution's probability below -y with c and p of math.cuh's gelu: small values keep their digits.
// A tile kernel with a branch for each activation would spill the tile; coefficients cost little. Products that are added
// to something are fused with it everywhere, so that no bit depends on the tile's size.
#pragma once
#include <cuda_tile.h>

namespace pk {

namespace ct = cuda::tiles;

struct Curve {
  float least, e0, e1, e2, c0, c1, p0, p1, p2, p3, p4;
};

constexpr Curve kSiluCurve = {0, -1.44269504088896341f, 0, 0, 0, 1, 1, 0, 0, 0, 0};

template <typename Tile>
__tile__ Tile activated(Tile x, Curve f) {
  const auto number = [](float value) { return ct::full<Tile>(value); };
  const ct::round_subnormals_to_zero_t flush;
  const Tile y = ct::min(ct::abs(x), 1e30f);  // of infinity nothing is taken off: 0
  const Tile e = ct::exp2(y * ct::fma(ct::fma(y, number(f.e2), number(f.e1)), y, number(f.e0)), flush);
  const Tile below = ct::fma(e, number(f.c1), ct::fma(y, number(f.c0), number(1.0f)));
  const Tile c = ct::div(1.0f, below, ct::round_approximate_t{}, flush);
  Tile p = ct::fma(c, number(f.p4), number(f.p3));
  p = ct::fma(c, p, number(f.p2));
  p = ct::fma(c, p, number(f.p1));
  p = ct::fma(c, p, number(f.p0));
  return ct::fma(-y, c * p * e, ct::select(x < f.least, number(f.least), x));  // NaN stays
}

}  // namespace pk
