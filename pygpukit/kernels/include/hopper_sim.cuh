// hopper_sim.cuh: the functions of hopper.cuh on the simulated device, with the same descriptors, swapped pieces and
// phases. Copies arrive at once, products are made when they are waited for: the two ends of what a device may do, so
// that a tile which is filled while a product still reads it gives wrong sums, or a race in checked mode.
#pragma once

namespace pk::hopper {

// No kernel may rely on shared memory that begins at a multiple of 1024.
constexpr unsigned kWindow = 128;

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
  return static_cast<unsigned>(static_cast<const char *>(pointer) - static_cast<char *>(pk_sim_dynamic_base)) + kWindow;
}
__device__ __forceinline__ char *shared_pointer(unsigned address) {
  return static_cast<char *>(pk_sim_dynamic_base) + (address - kWindow);
}
__device__ __forceinline__ unsigned swapped(unsigned address) { return address ^ (address >> 7 & 7u) << 4; }

// ---- clusters and registers

__device__ __forceinline__ unsigned rank_in_cluster() { return __clusterRelativeBlockRank(); }
__device__ __forceinline__ void sync_cluster() {
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}
template <int Registers>
__device__ __forceinline__ void give_registers() {}
template <int Registers>
__device__ __forceinline__ void take_registers() {}

// ---- barriers: the phase's parity, arrivals that are missing, those of a phase, and bytes that are missing

struct Phase {
  unsigned parity : 1, missing : 15, arrivals : 16;
  int bytes;
};

template <class Change>
__device__ void change(Barrier *barrier, Change with) {
  __threadfence();
  unsigned long long before = atomicAdd(&barrier->state, 0ull), found;
  for (;; before = found) {
    Phase phase;
    memcpy(&phase, &before, sizeof phase);
    with(phase);
    if (phase.missing == 0 && phase.bytes == 0) {
      phase.parity ^= 1u;
      phase.missing = phase.arrivals;
    }
    unsigned long long after;
    memcpy(&after, &phase, sizeof after);
    found = atomicCAS(&barrier->state, before, after);
    if (found == before) return;
  }
}

__device__ inline void make_barrier(Barrier *barrier, unsigned arrivals) {
  const Phase phase = {0u, arrivals & 0x7fffu, arrivals & 0xffffu, 0};
  memcpy(&barrier->state, &phase, sizeof phase);
}
__device__ __forceinline__ void publish_barriers() { __threadfence(); }
__device__ inline void arrive(Barrier *barrier, unsigned rank) {
  change(static_cast<Barrier *>(__cluster_map_shared_rank(barrier, rank)), [](Phase &phase) { --phase.missing; });
}
__device__ inline void arrive_expecting(Barrier *barrier, unsigned bytes) {
  change(barrier, [bytes](Phase &phase) {
    --phase.missing;
    phase.bytes += static_cast<int>(bytes);
  });
}
__device__ inline void wait(Barrier *barrier, unsigned parity) {
  while ((atomicAdd(&barrier->state, 0ull) & 1u) == parity) __nanosleep(0);
  __threadfence();
}

// ---- copies

// What the simulated device has in place of a map's tail. Strides are bytes from one line and one matrix to the next.
struct SimMap {
  unsigned long long extents[3], strides[2];
  unsigned box[2], item_bytes, to_tf32;
};

// As a copy rounds a float to tf32: to nearest, to even from the middle.
__device__ __forceinline__ unsigned to_tf32(unsigned bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits;
  return (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
}

template <class T>
__device__ __forceinline__ const TensorMap &map_of(T *const &, const MapTail &tail) {
  return reinterpret_cast<const TensorMap &>(tail);
}
__device__ __forceinline__ void fetch_map(const TensorMap &) {}

__device__ inline void copy_box_to(unsigned ranks, void *tile, const TensorMap &map, const void *array, int x, int y,
                                   int z, Barrier *barrier) {
  SimMap of;
  memcpy(&of, reinterpret_cast<const char *>(&map), sizeof of);
  const long long piece = 16 / of.item_bytes;
  for (unsigned rank = 0; ranks >> rank; ++rank) {
    if (!(ranks >> rank & 1u)) continue;
    for (unsigned line = 0; line < of.box[1]; ++line) {
      for (unsigned at = 0; at < of.box[0] * of.item_bytes; at += 16) {
        const long long first = x + at / of.item_bytes, row = y + static_cast<long long>(line);
        const long long inside = static_cast<long long>(of.extents[0]) - first;
        uint4 words = {0, 0, 0, 0};
        if (row >= 0 && row < static_cast<long long>(of.extents[1]) && inside > 0) {
          const char *from =
              static_cast<const char *>(array) + z * of.strides[1] + row * of.strides[0] + first * of.item_bytes;
          if (inside >= piece) {
            words = *reinterpret_cast<const uint4 *>(from);
          } else {
            memcpy(&words, from, static_cast<size_t>(inside) * of.item_bytes);
          }
        }
        if (of.to_tf32) words = {to_tf32(words.x), to_tf32(words.y), to_tf32(words.z), to_tf32(words.w)};
        char *to = shared_pointer(swapped(shared_address(tile) + line * kLine + at));
        *static_cast<uint4 *>(__cluster_map_shared_rank(to, rank)) = words;
      }
    }
    const int bytes = static_cast<int>(of.box[0] * of.box[1] * of.item_bytes);
    change(static_cast<Barrier *>(__cluster_map_shared_rank(barrier, rank)),
           [bytes](Phase &phase) { phase.bytes -= bytes; });
  }
}
__device__ inline void copy_box(void *tile, const TensorMap &map, const void *array, int x, int y, int z,
                                Barrier *barrier) {
  copy_box_to(1u << rank_in_cluster(), tile, map, array, x, y, z, barrier);
}

__device__ __forceinline__ void store_bytes(void *to, const void *from, unsigned bytes) {
  for (unsigned at = 0; at < bytes; at += 16)
    *reinterpret_cast<uint4 *>(static_cast<char *>(to) + at) =
        *reinterpret_cast<const uint4 *>(static_cast<const char *>(from) + at);
}
__device__ __forceinline__ void end_stores() {}
__device__ __forceinline__ void wait_for_stores() {}
__device__ __forceinline__ void publish_to_stores() {}
__device__ __forceinline__ void publish_to_products() {}
__device__ __forceinline__ void prefetch(const void *) {}

// ---- products

// A product reads of a float what tf32 has.
template <class Element>
__device__ __forceinline__ float factor_of(Element value) {
  return widen(value);
}
template <>
__device__ __forceinline__ float factor_of(float value) {
  return __uint_as_float(__float_as_uint(value) & ~0x1fffu);
}

// What a product reads of a line along k: 32 bytes.
template <class Element, bool Turned>
__device__ inline void read_line(unsigned long long descriptor, int line, float *to) {
  if (descriptor >> 62 != 1) __trap();  // not lines of 128 bytes
  const unsigned start = static_cast<unsigned>(descriptor & 0x3fffu) << 4;
  const unsigned chunk = static_cast<unsigned>(descriptor >> 16 & 0x3fffu) << 4;
  const unsigned eight = static_cast<unsigned>(descriptor >> 32 & 0x3fffu) << 4;
  if (Turned) {
    for (unsigned k = 0; k < kProductBytes / sizeof(Element); ++k) {
      const unsigned address = start + line / kChunk * chunk + k / 8 * eight + k % 8 * kLine;
      const unsigned inside = static_cast<unsigned>(line % kChunk * sizeof(Element));
      to[k] = factor_of(*reinterpret_cast<const Element *>(shared_pointer(swapped(address + inside))));
    }
    return;
  }
  for (unsigned at = 0; at < kProductBytes; at += 16) {
    const unsigned address = swapped(start + line / 8 * eight + line % 8 * kLine + at);
    const uint4 words = *reinterpret_cast<const uint4 *>(shared_pointer(address));
    Element values[16 / sizeof(Element)];
    memcpy(values, &words, sizeof words);
    for (const Element &value : values) *to++ = factor_of(value);
  }
}

// Sums in float32, in ascending order of k; a device sums in its own order.
template <class Element, bool BTurned>
__device__ inline void make_product(float *sums, int columns, const float (&left)[2][kProductBytes / sizeof(Element)],
                                    unsigned long long b, int add) {
  constexpr int kDepth = kProductBytes / sizeof(Element);
  const int thread = static_cast<int>(threadIdx.x) % kGroup;
  float right[kDepth];
  for (int i = 0; i < columns / 8; ++i) {
    for (int c = 0; c < 2; ++c) {
      read_line<Element, BTurned>(b, 8 * i + thread % 4 * 2 + c, right);
      for (int r = 0; r < 2; ++r) {
        float &sum = sums[4 * i + 2 * r + c];
        float total = add ? sum : 0.0f;
        for (int k = 0; k < kDepth; ++k) total += left[r][k] * right[k];
        sum = total;
      }
    }
  }
}

template <class Element, bool ATurned, bool BTurned>
struct Products {
  static constexpr int kDepth = kProductBytes / sizeof(Element), kHeld = sizeof(Element) == 4 ? kDepth : 1;
  struct One {
    float *sums;
    int columns;
    unsigned long long a, b;
    int add, batch;
    bool held;
    float left[2][kHeld];  // if it is held
  };
  One waiting[32];
  int count = 0, batch = 0;

  __device__ void begin() {}
  template <int Count>
  __device__ void start(float (&sums)[Count], unsigned long long a, unsigned long long b, int add) {
    if (count == 32) __trap();
    waiting[count++] = {sums, Count * kGroup / kProductRows, a, b, add, batch, false, {}};
  }
  template <int Count>
  __device__ void start(float (&sums)[Count], const unsigned (&a)[4], unsigned long long b, int add) {
    if (count == 32) __trap();
    One &one = waiting[count++] = {sums, Count * kGroup / kProductRows, 0, b, add, batch, true, {}};
    for (int i = 0; i < 4; ++i) {
      for (int lane = 0; lane < 4; ++lane) {
        const unsigned word = __shfl_sync(~0u, a[i], static_cast<int>(threadIdx.x) % 32 / 4 * 4 + lane);
        one.left[i % 2][i / 2 * 4 + lane] = factor_of(__uint_as_float(word));
      }
    }
  }
  __device__ void end() { ++batch; }
  template <int Latest>
  __device__ void wait() {
    int done = 0;
    for (; done < count && waiting[done].batch < batch - Latest; ++done) {
      const One &one = waiting[done];
      const int thread = static_cast<int>(threadIdx.x) % kGroup, row = thread / 32 * 16 + thread % 32 / 4;
      float left[2][kDepth];
      for (int r = 0; r < 2; ++r) {
        if (one.held)
          memcpy(left[r], one.left[r], sizeof one.left[r]);
        else
          read_line<Element, ATurned>(one.a, row + 8 * r, left[r]);
      }
      make_product<Element, BTurned>(one.sums, one.columns, left, one.b, one.add);
    }
    for (int i = done; i < count; ++i) waiting[i - done] = waiting[i];
    count -= done;
    __syncwarp();  // a device waits for the warp's products: any lane may let go of the tiles
  }
  template <int Count>
  __device__ void wait_for(float (&)[Count]) {
    wait<0>();
  }
};

}  // namespace pk::hopper
