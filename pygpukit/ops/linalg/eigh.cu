// eigh.cu: eigenvalues and eigenvectors of small Hermitian matrices by Jacobi's rotations, as many at once as fit.
#include "matrices.cuh"

namespace pk {

struct EighCall {
  Stack a;
  int n;
  int vectors;  // whether they are made
  int sweeps;   // at most
};

template <class T>
__global__ void __launch_bounds__(128)
    eigh(const T *a, real_t<T> *values, T *vectors, int *info, const __grid_constant__ EighCall call) {
  using R = real_t<T>;
  const int n = call.n, step = padded(n), me = threadIdx.x, threads = blockDim.x;
  const int even = n + (n & 1), pairs = even / 2;
  extern __shared__ double2 eigh_memory[];
  T *m = reinterpret_cast<T *>(eigh_memory), *v = m + n * step;
  T *sines = v + (call.vectors ? n * step : 0);
  R *cosines = reinterpret_cast<R *>(sines + pairs), *scratch = cosines + pairs;
  int *place = reinterpret_cast<int *>(scratch + 4);
  const T *from = matrix_of(a, call.a);
  for (int e = me; e < n * step; e += threads) {
    const int i = e / step, j = e % step, row = j <= i ? i : j, column = j <= i ? j : i;
    T value = convert<T>::from(R(0));
    if (j < n) value = from[row * call.a.row + column * call.a.column];
    m[e] = i == j ? convert<T>::from(real(value)) : j < i ? value : conjugate(value);
    if (call.vectors) v[e] = convert<T>::from(i == j ? R(1) : R(0));
  }
  __syncthreads();
  const R scale = scale_of(m, n * step, scratch);
  for (int e = me; e < n * step; e += threads) m[e] = times(m[e], scale);
  __syncthreads();
  // The largest element is between a half and 2 now: what is below this is nothing beside the rounding of the rest.
  const R nothing = R(limits<R>::epsilon / 8);
  bool rotated = scale != 0;
  for (int sweep = 0; rotated && sweep < call.sweeps; ++sweep) {
    rotated = false;
    for (int round = 0; round < even - 1; ++round) {
      bool mine = false;
      for (int pair = me; pair < pairs; pair += threads) {
        int p, q;
        meeting(even, round, pair, &p, &q);
        Rotation<T> turn = {R(1), convert<T>::from(R(0))};
        if (q < n) {
          const T pq = m[p * step + q];
          const R size = magnitude(pq);
          if (size > nothing) {
            turn = rotation(real(m[p * step + p]), real(m[q * step + q]), pq, size);
            mine = true;
          }
        }
        cosines[pair] = turn.c;
        sines[pair] = turn.z;
      }
      if (!__syncthreads_or(mine)) continue;
      rotated = true;
      for (int e = me; e < pairs * n; e += threads) {
        int p, q;
        const int i = e % n;
        meeting(even, round, e / n, &p, &q);
        if (q >= n) continue;
        const Rotation<T> turn = {cosines[e / n], sines[e / n]};
        rotate(m[i * step + p], m[i * step + q], turn);
        if (call.vectors) rotate(v[i * step + p], v[i * step + q], turn);
      }
      __syncthreads();
      for (int e = me; e < pairs * n; e += threads) {
        int p, q;
        const int j = e % n;
        meeting(even, round, e / n, &p, &q);
        if (q >= n) continue;
        const Rotation<T> turn = {cosines[e / n], conjugate(sines[e / n])};
        T &above = m[p * step + j], &below = m[q * step + j];
        rotate(above, below, turn);
        if (j == p) {
          above = convert<T>::from(real(above));
          if (extent(turn.z) != 0) below = convert<T>::from(R(0));
        }
        if (j == q) {
          below = convert<T>::from(real(below));
          if (extent(turn.z) != 0) above = convert<T>::from(R(0));
        }
      }
      __syncthreads();
    }
  }
  const bool failed = scale == 0 || rotated;
  const long long block = blockIdx.x;
  if (me == 0) info[block] = failed;
  for (int i = me; i < n; i += threads) {  // in ascending order
    const R own = real(m[i * step + i]);
    int before = 0;
    for (int j = 0; j < n; ++j) {
      const R other = real(m[j * step + j]);
      before += other < own || (other == own && j < i);
    }
    place[i] = failed ? i : before;
    values[block * n + place[i]] = failed ? not_a_number<R>() : own / scale;
  }
  if (!call.vectors) return;
  __syncthreads();
  for (int e = me; e < n * n; e += threads) {
    const int i = e / n, j = e % n;
    vectors[block * n * n + i * n + place[j]] = failed ? not_a_number<T>() : v[i * step + j];
  }
}

}  // namespace pk
