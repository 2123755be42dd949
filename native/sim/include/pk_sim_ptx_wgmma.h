// pk_sim_ptx_wgmma.h: products that a warp group makes of tiles in shared memory while it goes on (wgmma.mma_async) on
// the simulated device. Those of the group's four warps are made together, by the first of them that waits, as soon as
// all four have committed them: as on a device, one warp may then let go of a tile for all. A tile which is filled
// while a product still reads it gives wrong sums, or a race in checked mode.
#pragma once
#pragma GCC system_header

#include "pk_sim_matrix.h"

// ---- tiles, as descriptors tell them

// Bits 0 to 17 of an address of shared memory are enough to find it: a block has less.
PK_SIM_MATRIX_INLINE const char *pk_ptx_of_tile(unsigned address) {
  const unsigned far = (address - (unsigned)(size_t)pk_sim_dynamic_base) & 0x3ffffu;
  if (far < pk_sim_dynamic_bytes) return (const char *)pk_sim_dynamic_base + far;
  return (const char *)&pk_sim_anchor + ((int)((address - (unsigned)(size_t)&pk_sim_anchor) << 14) >> 14);
}
// Piece i, 16 bytes, of what a product reads. Along k: half i % 2 of line i / 2. Turned: of the eight lines from
// i / 16 * 8 on at k = i % 16.
PK_SIM_MATRIX_INLINE const char *pk_ptx_piece(unsigned long long tile, bool turned, int i) {
  const unsigned start = (unsigned)(tile & 0x3fffu) << 4, leading = (unsigned)(tile >> 16 & 0x3fffu) << 4,
                 stride = (unsigned)(tile >> 32 & 0x3fffu) << 4, swizzle = (unsigned)(tile >> 62);
  const unsigned width = swizzle ? 256u >> swizzle : 16u, u = (unsigned)i;  // bytes of a line
  unsigned address;
  if (!turned) {
    const unsigned line = u / 2, half = u % 2;
    address = start + line / 8 * stride + line % 8 * width + half * (swizzle ? 16u : leading);
  } else {
    const unsigned eight = u / 16, k = u % 16, chunk = width / 16;  // of eight lines each
    address = start + k % 8 * width + eight % chunk * 16;
    address += swizzle ? eight / chunk * leading + k / 8 * stride : eight * stride + k / 8 * leading;
  }
  const unsigned mask = swizzle ? (8u >> (swizzle - 1)) - 1 : 0;
  return pk_ptx_of_tile((address ^ (address >> 7 & mask) << 4) & 0x3ffffu);
}

// ---- what is on its way

struct pk_ptx_product {
  pk_ptx_product *next;
  void (*make)(const pk_ptx_product &);
  unsigned long long a, b;
  int columns, rows_from;  // the warp's place in its group: which 16 of the 64 rows
  unsigned batch;
  bool held, add, a_turned, b_turned, a_negative, b_negative, saturates;
  void *sums[32];        // of each lane
  unsigned left[32][4];  // a of each lane, where it is held in registers
};
struct pk_ptx_queue {
  pk_ptx_product *first, *last;
  unsigned batch, block;  // in which it was begun, as pk_sim_blocks_begun counts
};
PK_SIM_STATE pk_ptx_queue pk_sim_products[32];  // of the block's warps

PK_SIM_MATRIX_INLINE pk_ptx_queue &pk_ptx_products(unsigned warp) {
  pk_ptx_queue &queue = pk_sim_products[warp];
  if (queue.block != pk_sim_blocks_begun) queue = {nullptr, nullptr, 0, pk_sim_blocks_begun};
  return queue;
}

// ---- making one

template <class T, bool Turned, class Put>
PK_SIM_MATRIX_INLINE void pk_ptx_read_piece(const char *from, int i, Put put) {
  constexpr int each = 128 / T::bits;
  unsigned words[4];
  __builtin_memcpy(words, from, sizeof words);
  for (int j = 0; j < each; ++j) {
    const typename T::value value = T::of(pk_sim_register_element<T::bits>(words, j));
    if (Turned)
      put(i / 16 * 8 + j, i % 16, value);
    else
      put(i / 2, i % 2 * each + j, value);
  }
}
template <class T, class Put>
PK_SIM_MATRIX_INLINE void pk_ptx_read_pieces(unsigned long long tile, bool turned, int first, int count, Put put) {
  if (T::bits == 16 && turned) {
    for (int i = 0; i < count; ++i) pk_ptx_read_piece<T, true>(pk_ptx_piece(tile, true, first + i), i, put);
  } else {
    for (int i = 0; i < count; ++i) pk_ptx_read_piece<T, false>(pk_ptx_piece(tile, false, first + i), i, put);
  }
}

// Of single bits: where both are set.
template <class A>
struct pk_ptx_step {
  typedef pk_sim_multiply type;
};
template <>
struct pk_ptx_step<pk_sim_mma_b1> {
  typedef pk_sim_both type;
};

// Sums are in ascending order of k with one rounding each; a device sums in its own order.
template <class D, class A, class B>
struct pk_ptx_products_of {
  static constexpr int depth = 256 / A::bits;
  typedef typename A::value V;
  typedef typename pk_sim_sum_type<V>::type S;
  static PK_SIM_UNCHECKED void make(const pk_ptx_product &one) {
    V a[16][depth], b[depth][8];
    S sum[16][8];
    const V a_sign = one.a_negative ? -1 : 1, b_sign = one.b_negative ? -1 : 1;
    if (one.held) {
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 128 / A::bits; ++i) {
          const pk_sim_spot at = pk_sim_held<16, 32 / A::bits>(lane, i);
          a[at.row][at.column] = a_sign * A::of(pk_sim_register_element<A::bits>(one.left[lane], i));
        }
    } else {
      pk_ptx_read_pieces<A>(one.a, one.a_turned, one.rows_from * 2, 32,
                            [&](int row, int k, V value) PK_SIM_UNCHECKED { a[row][k] = a_sign * value; });
    }
    for (int eight = 0; eight < one.columns / 8; ++eight) {
      pk_ptx_read_pieces<B>(one.b, one.b_turned, eight * 16, 16,
                            [&](int column, int k, V value) PK_SIM_UNCHECKED { b[k][column] = b_sign * value; });
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
          const pk_sim_spot at = pk_sim_held<16, 2>(lane, i);
          sum[at.row][at.column] = one.add ? (S)D::of(element(one.sums[lane], 4 * eight + i)) : (S)0;
        }
      pk_sim_product<typename pk_ptx_step<A>::type>(sum, a, b);
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
          const pk_sim_spot at = pk_sim_held<16, 2>(lane, i);
          pk_sim_put((R *)one.sums[lane], 4 * eight + i, sum[at.row][at.column], one.saturates);
        }
    }
  }

 private:
  template <class T, class = void>
  struct register_of {
    typedef unsigned type;
  };
  template <class T>
  struct register_of<pk_sim_mma_f32, T> {
    typedef float type;
  };
  template <class T>
  struct register_of<pk_sim_mma_s32, T> {
    typedef int type;
  };
  typedef typename register_of<D>::type R;
  PK_SIM_MATRIX_INLINE auto element(const void *sums, int i) {
    return pk_sim_register_element<D::bits>((const R *)sums, i);
  }
};

// ---- starting, and waiting

struct pk_ptx_product_frame {
  const pk_sim_warp_work *work;
  pk_ptx_product like;
  void *sums;
  unsigned left[4];
};
struct pk_ptx_start {
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    pk_ptx_product *const one =
        (pk_ptx_product *)pk_sim_device->scratch(nullptr, (sizeof(pk_ptx_product) + 63) & ~63ul);
    if (!one) __builtin_trap();
    *one = ((const pk_ptx_product_frame *)frames[0])->like;
    for (int lane = 0; lane < 32; ++lane) {
      const pk_ptx_product_frame &own = *(const pk_ptx_product_frame *)frames[lane];
      one->sums[lane] = own.sums;
      __builtin_memcpy(one->left[lane], own.left, sizeof own.left);
    }
    pk_ptx_queue &queue = pk_ptx_products(pk_sim_thread / 32);
    one->batch = queue.batch;
    (queue.first ? queue.last->next : queue.first) = one;
    queue.last = one;
  }
  static constexpr pk_sim_warp_work work = {"wgmma.mma_async", compute};
};
struct pk_ptx_commit_frame {
  const pk_sim_warp_work *work;
};
struct pk_ptx_commit {
  static PK_SIM_UNCHECKED void compute(void *const *) { ++pk_ptx_products(pk_sim_thread / 32).batch; }
  static constexpr pk_sim_warp_work work = {"wgmma.commit_group", compute};
};
struct pk_ptx_wait_frame {
  const pk_sim_warp_work *work;
  unsigned batches;  // that must be over
};
// Calls visit for the queue of each warp of the thread's group.
template <class Visit>
PK_SIM_MATRIX_INLINE void pk_ptx_of_group(Visit visit) {
  const unsigned first = pk_sim_thread / 128 * 4;
  for (unsigned warp = first; warp < first + 4; ++warp) visit(pk_ptx_products(warp));
}
struct pk_ptx_wait {
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    const unsigned batches = ((const pk_ptx_wait_frame *)frames[0])->batches;
    pk_ptx_of_group([batches](pk_ptx_queue &queue) PK_SIM_UNCHECKED {
      while (queue.first && queue.first->batch < batches) {
        pk_ptx_product *const one = queue.first;
        one->make(*one);
        queue.first = one->next;
        pk_sim_device->scratch(one, 0);
      }
    });
  }
  static constexpr pk_sim_warp_work work = {"wgmma.wait_group", compute};
};

PK_SIM_NOINLINE void pk_ptx_tile_known(unsigned long long tile, const char *file, int line) {
  if (tile >> 49 & 7)
    pk_sim_fail(PK_SIM_FAIL_MATRIX, "wgmma: a descriptor with a base offset: tiles begin where their swizzle does;", "",
                file, line);
}
// sums: the thread's, null where they are not neighbours in memory. left: a in registers, or null for the tile that a
// tells.
template <class D, class A, class B>
PK_SIM_NOINLINE void pk_ptx_wgmma(int columns, void *sums, const unsigned *left, unsigned long long a,
                                  unsigned long long b, bool add, bool a_negative, bool b_negative, bool a_turned,
                                  bool b_turned, bool saturates, const char *file, int line) {
  if (!sums)
    pk_sim_fail(PK_SIM_FAIL_MATRIX, "wgmma: the sums of a product are not the elements of one array in their order;",
                "", file, line);
  if (pk_sim_thread / 128 * 128 + 128 > blockDim.x * blockDim.y * blockDim.z)
    pk_sim_fail(PK_SIM_FAIL_MATRIX, "wgmma: a group is four warps, the last of the block has fewer;", "", file, line);
  if (!left) pk_ptx_tile_known(a, file, line);
  pk_ptx_tile_known(b, file, line);
  pk_ptx_product_frame frame = {&pk_ptx_start::work, {}, sums, {}};
  pk_ptx_product &like = frame.like;
  like.make = pk_ptx_products_of<D, A, B>::make;
  like.a = a, like.b = b;
  like.columns = columns, like.rows_from = (int)(pk_sim_thread / 32 % 4 * 16);
  like.held = left != nullptr, like.add = add;
  like.a_turned = a_turned, like.b_turned = b_turned;
  like.a_negative = a_negative, like.b_negative = b_negative, like.saturates = saturates;
  if (left) __builtin_memcpy(frame.left, left, sizeof frame.left);
  pk_sim_matrix_call(frame, file, line);
}
PK_SIM_INLINE void pk_ptx_commit_products(PK_SIM_HERE) {
  pk_ptx_commit_frame frame = {&pk_ptx_commit::work};
  pk_sim_matrix_call(frame, pk_sim_file, pk_sim_line);
}
#ifdef PK_SIM_CHECK
static __shared__ unsigned long long pk_ptx_group_over[8];  // what the warps of a group know of each other's products
// Each lane has read a part of the tiles, its warp lets the group know, and knows what the group has read before.
PK_SIM_NOINLINE void pk_ptx_read_tiles(unsigned batches, const char *file, int line) {
  const int lane = (int)(pk_sim_thread % 32);
  pk_ptx_of_group([=](const pk_ptx_queue &queue) PK_SIM_UNCHECKED {
    for (const pk_ptx_product *one = queue.first; one && one->batch < batches; one = one->next) {
      if (!one->held)
        pk_sim_matrix_read(pk_ptx_piece(one->a, one->a_turned, one->rows_from * 2 + lane), 16, file, line);
      for (int i = lane; i < one->columns * 2; i += 32)
        pk_sim_matrix_read(pk_ptx_piece(one->b, one->b_turned, i), 16, file, line);
    }
  });
  __syncwarp(0xffffffffu, file, line);  // any lane may let go of what the products have read
  __threadfence(file, line);
  pk_sim_begin_atomic(pk_ptx_group_over + pk_sim_thread / 128, 8, file, line, true);
  __threadfence(file, line);
}
#endif
// Until at most the latest few batches are on their way.
PK_SIM_NOINLINE void pk_ptx_wait_products(unsigned latest, PK_SIM_HERE) {
  const unsigned begun = pk_ptx_products(pk_sim_thread / 32).batch, batches = begun > latest ? begun - latest : 0;
  for (;;) {
    bool all = true;
    pk_ptx_of_group([&](const pk_ptx_queue &queue) PK_SIM_UNCHECKED { all &= queue.batch >= batches; });
    if (all) break;
    pk_sim_yield(pk_sim_file, pk_sim_line);
  }
#ifdef PK_SIM_CHECK
  pk_ptx_read_tiles(batches, pk_sim_file, pk_sim_line);
#endif
  pk_ptx_wait_frame frame = {&pk_ptx_wait::work, batches};
  pk_sim_matrix_call(frame, pk_sim_file, pk_sim_line);
}
// The first of a thread's sums; null where they are not neighbours.
template <class T, class... More>
PK_SIM_INLINE void *pk_ptx_neighbours(T &first, More &...more) {
  const char *at = (const char *)&first;
  return ((at += sizeof(T), at == (const char *)&more) && ...) ? (void *)&first : nullptr;
}
// The same for what is written as the elements of one array in their order, by the first and the last.
template <class T>
PK_SIM_INLINE void *pk_ptx_elements(T &first, T &last, int count) {
  return (const char *)&last - (const char *)&first == (count - 1) * (long)sizeof(T) ? (void *)&first : nullptr;
}
