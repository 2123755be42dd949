// pk_sim_ptx_tensor.h: copies of boxes of an array to and from shared memory (cp.async.bulk.tensor) on the simulated
// device, and of bytes to several blocks of a cluster. They arrive at once.
#pragma once
#pragma GCC system_header

#include "pk_sim_matrix.h"
#include "pk_sim_ptx_barrier.h"

// What the simulated device has in the place of a driver's CUtensorMap; pygpukit/jit/ptx/maps.py makes it. Strides are
// bytes from one element of axis 1 to 4 to the next, axis 0 is dense.
struct pk_ptx_map {
  const char *array;
  unsigned long long strides[4];
  unsigned extents[5];
  unsigned short box[5];
  unsigned char steps[5];                       // only each so many elements of an axis of the box are copied
  unsigned char rank, bytes, swizzle, to_tf32;  // bytes of an element; 32, 64 or 128 bytes are 1 to 3
  unsigned known;
};
static constexpr unsigned pk_ptx_map_known = 0x50544b4du;

// As a copy rounds a float to tf32: to nearest, to even from the middle.
PK_SIM_MATRIX_INLINE unsigned pk_ptx_copied_tf32(unsigned bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits;
  return (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
}

PK_SIM_MATRIX_INLINE void pk_ptx_touch(const void *address, size_t bytes, bool write, const char *file, int line) {
#ifdef PK_SIM_CHECK
  pk_sim_check_access(address, bytes, write ? PK_SIM_WRITE : PK_SIM_READ, file, line);
#else
  (void)address, (void)bytes, (void)write, (void)file, (void)line;
#endif
}

// Up to 16 bytes, which most pieces have.
PK_SIM_MATRIX_INLINE void pk_ptx_copied(void *to, const void *from, unsigned bytes) {
  if (bytes == 16)
    __builtin_memcpy(to, from, 16);
  else
    __builtin_memcpy(to, from, bytes);
}

// Visits the box: visit(array's address or null outside of the array, offset in the tile, bytes) for pieces of at most
// 16 bytes that are neighbours in both.
template <class Visit>
PK_SIM_MATRIX_INLINE void pk_ptx_visit(const pk_ptx_map &map, const int *at, Visit visit) {
  unsigned counts[5] = {1, 1, 1, 1, 1}, index[5] = {};
  for (int axis = 0; axis < map.rank; ++axis) counts[axis] = (map.box[axis] + map.steps[axis] - 1u) / map.steps[axis];
  const unsigned row = counts[0] * map.bytes, each = map.steps[0] == 1 ? 16u : map.bytes;
  for (unsigned tile = 0;; tile += row) {
    const char *from = map.array;
    bool inside = true;
    for (int axis = 1; axis < map.rank; ++axis) {
      const long long place = at[axis] + (long long)index[axis] * map.steps[axis];
      inside &= place >= 0 && place < (long long)map.extents[axis];
      from += place * (long long)map.strides[axis - 1];
    }
    for (unsigned offset = 0; offset < row; offset += each) {
      const unsigned end = row - offset < each ? row - offset : each;
      const long long first = at[0] + (long long)(offset / map.bytes) * map.steps[0];
      const long long last = first + end / map.bytes, extent = map.extents[0];
      if (inside && first >= 0 && last <= extent) {
        visit(from + first * map.bytes, tile + offset, end);
      } else {
        for (unsigned byte = 0; byte < end; byte += map.bytes) {
          const long long place = first + byte / map.bytes;
          visit(inside && place >= 0 && place < extent ? from + place * map.bytes : nullptr, tile + offset + byte,
                (unsigned)map.bytes);
        }
      }
    }
    int axis = 1;
    while (axis < map.rank && ++index[axis] == counts[axis]) index[axis++] = 0;
    if (axis >= map.rank) return;
  }
}
// Where an offset of a tile lies: bits 4 to 6 of its address are combined (xor) with bits 7 to 9, as the swizzle says.
PK_SIM_MATRIX_INLINE char *pk_ptx_swapped(void *tile, unsigned offset, unsigned swizzle) {
  const size_t address = (size_t)tile + offset;
  return (char *)(address ^ (address >> 7 & ((1u << swizzle) - 1u)) << 4);
}

PK_SIM_MATRIX_INLINE const pk_ptx_map &pk_ptx_map_at(const void *address, unsigned rank, const char *file, int line) {
  const pk_ptx_map &map = *(const pk_ptx_map *)address;
  pk_sim_matrix_aligned(address, 64, "cp.async.bulk.tensor", file, line);
  if (map.known != pk_ptx_map_known)
    pk_sim_fail(PK_SIM_FAIL_TRAP, "cp.async.bulk.tensor: what is given is no tensor map of the simulated device;", "",
                file, line);
  if (map.rank != rank)
    pk_sim_fail(PK_SIM_FAIL_TRAP, "cp.async.bulk.tensor: the tensor map has another number of axes;", "", file, line);
  return map;
}

// ranks: a bit for each block of the cluster that gets it; 0 for the block whose memory `tile` is.
template <int Rank>
PK_SIM_NOINLINE void pk_ptx_load_tensor(void *tile, const void *described, const int (&at)[Rank], void *barrier,
                                        unsigned ranks, const char *file, int line) {
  const pk_ptx_map &map = pk_ptx_map_at(described, Rank, file, line);
  pk_sim_matrix_aligned(tile, 128, "cp.async.bulk.tensor", file, line);
  for (unsigned rank = 0; rank == 0 || ranks >> rank; ++rank) {
    if (ranks && !(ranks >> rank & 1u)) continue;
    unsigned total = 0;
    pk_ptx_visit(map, at, [&](const char *from, unsigned offset, unsigned bytes) PK_SIM_UNCHECKED {
      unsigned words[4] = {};
      if (from) {
        pk_ptx_touch(from, bytes, false, file, line);
        pk_ptx_copied(words, from, bytes);
      }
      if (map.to_tf32)
        for (unsigned &word : words) word = pk_ptx_copied_tf32(word);
      char *to = pk_ptx_swapped(tile, offset, map.swizzle);
      if (ranks) to = (char *)pk_sim_map_shared(to, rank, file, line);
      pk_ptx_touch(to, bytes, true, file, line);
      pk_ptx_copied(to, words, bytes);
      total += bytes;
    });
    pk_ptx_barrier_complete_tx(ranks ? pk_sim_map_shared(barrier, rank, file, line) : barrier, total, file, line);
  }
}
template <int Rank>
PK_SIM_NOINLINE void pk_ptx_store_tensor(const void *described, const int (&at)[Rank], void *tile, const char *file,
                                         int line) {
  const pk_ptx_map &map = pk_ptx_map_at(described, Rank, file, line);
  pk_sim_matrix_aligned(tile, 128, "cp.async.bulk.tensor", file, line);
  pk_ptx_visit(map, at, [&](const char *to, unsigned offset, unsigned bytes) PK_SIM_UNCHECKED {
    if (!to) return;
    const char *from = pk_ptx_swapped(tile, offset, map.swizzle);
    pk_ptx_touch(from, bytes, false, file, line);
    pk_ptx_touch(to, bytes, true, file, line);
    pk_ptx_copied((char *)to, from, bytes);
  });
}
// Bytes, at multiples of 16, to the same place in each block of the cluster whose bit is set.
PK_SIM_NOINLINE void pk_ptx_copy_to_blocks(void *to, const void *from, unsigned bytes, void *barrier, unsigned ranks,
                                           const char *file, int line) {
  for (unsigned rank = 0; ranks >> rank; ++rank) {
    if (!(ranks >> rank & 1u)) continue;
    char *const there = (char *)pk_sim_map_shared(to, rank, file, line);
    for (unsigned at = 0; at < bytes; at += 16) {
      pk_ptx_touch((const char *)from + at, 16, false, file, line);
      pk_ptx_touch(there + at, 16, true, file, line);
      __builtin_memcpy(there + at, (const char *)from + at, 16);
    }
    pk_ptx_barrier_complete_tx(pk_sim_map_shared(barrier, rank, file, line), bytes, file, line);
  }
}
