// swizzled.cuh: stages of an operand in shared memory, from which ldmatrix reads the fragments of mma.sync.
//
// A stage has lines of whole 16-byte chunks, without padding. The chunks of neighbouring lines are exchanged by XOR, so
// that eight of them, of one line or of eight lines one below the other, lie in different banks.
#pragma once
#include "ahead.cuh"
#include "mma.cuh"

namespace pk {

// Where a chunk of a line lies, in bytes. phase: line % 8. 128 bytes hold 8 / Chunks lines, where these are shorter.
template <int Chunks>
__device__ __forceinline__ int swizzled(int line, int chunk, int phase) {
  static_assert(Chunks % 8 == 0 || Chunks == 4, "whole lines of banks");
  constexpr int kLines = Chunks < 8 ? 8 / Chunks : 1, kMask = Chunks < 8 ? Chunks - 1 : 7;
  return (line * Chunks + (chunk ^ (phase / kLines & kMask))) * 16;
}

// Rows of a or columns of b, as one thread of a block copies its share of a stage: Extent of them, Depth of k. The
// operand's lines lie along k, or across it, and are whole chunks of memory.
template <class T, int Extent, int Depth, bool AlongK, int Threads>
struct SwizzledSide {
  static constexpr int kPack = 16 / sizeof(T), kSize = Extent * Depth;
  static constexpr int kLines = AlongK ? Extent : Depth, kChunks = (AlongK ? Depth : Extent) / kPack;
  static constexpr int kAcross = kChunks < 8 ? kChunks : 8, kDown = Threads / kAcross;  // threads that copy at once
  static constexpr int kOfLine = kChunks / kAcross, kCopies = kLines / kDown * kOfLine;
  static_assert(kLines % kDown == 0 && kDown % 8 == 0, "threads have as many copies each");

  const T *at;  // the thread's next copy
  long long apart, next;
  int slot;          // of its first copy in a stage, in bytes
  int lines, inner;  // elements that are left from there

  // first: of row or column 0 of the tile, at k = 0. left: rows or columns from there on.
  __device__ __forceinline__ SwizzledSide(const T *first, long long lead, int left, int k) {
    const int line = threadIdx.x / kAcross, chunk = threadIdx.x % kAcross;
    at = first + line * lead + chunk * kPack;
    apart = kDown * lead;
    next = (AlongK ? Depth : Depth * lead) - kLines / kDown * apart;
    slot = swizzled<kChunks>(line, chunk, line % 8);
    lines = (AlongK ? left : k) - line;
    inner = (AlongK ? k : left) - chunk * kPack;
  }

  // Asks for one of the copies of a stage, in ascending order: zeros beyond the operand.
  __device__ __forceinline__ void copy(T *stage, int number) {
    const int down = number / kOfLine * kDown, across = number % kOfLine * (kAcross * kPack);
    const int count = down < lines && across < inner ? kPack : 0;
    unsigned char *const to =
        reinterpret_cast<unsigned char *>(stage) + slot + (down * kChunks + number % kOfLine * kAcross) * 16;
    copy_ahead<kPack>(reinterpret_cast<T *>(to), at + across, count);
    if (number % kOfLine == kOfLine - 1) at += apart;
  }
  // To the next stage, after the last copy.
  __device__ __forceinline__ void advance() {
    at += next;
    (AlongK ? inner : lines) -= Depth;
  }

  // The fragments of 16 of Extent and 32 bytes of k. Right: of the right operand, two of 8 columns.
  template <bool Right>
  static __device__ __forceinline__ void fragment(Pair (&to)[4], const T *stage, int extent, int k) {
    const int lane = threadIdx.x % 32, second = lane / 8 % 2, third = lane / 16, inside = lane % 8;
    const int e = Right ? third : second, d = Right ? second : third;
    const int byte = AlongK ? swizzled<kChunks>(extent + 8 * e + inside, k / kPack + d, inside)
                            : swizzled<kChunks>(k + 8 * d + inside, extent / kPack + e, inside);
    load_matrices<!AlongK>(to, reinterpret_cast<const unsigned char *>(stage) + byte);
  }
};

}  // namespace pk
