// lookback.cuh: blocks that pass partial results to later blocks inside one launch, without an order that timing picks.
//
// Blocks begin in the order of their numbers, on GPUs as on the simulator: one that waits for others before it waits
// for blocks that run.
#pragma once
#include "numeric.cuh"

namespace pk {

constexpr unsigned kAllLanes = 0xffffffffu;

// A value in slots of 64 bits, 32 of the value and a mark that says it is there. A slot is read and written whole, so
// no fence is needed between value and mark. Slots start as 0.
template <class T>
struct Slots {
  static_assert(sizeof(T) % 4 == 0, "slots hold 32 bits each");
  static constexpr int kCount = sizeof(T) / 4;
  union Bits {
    T value;
    unsigned part[kCount];
    __device__ Bits() {}
  };

  static __device__ __forceinline__ void publish(unsigned long long *slots, T value) {
    Bits bits;
    bits.value = value;
    for (int k = 0; k < kCount; ++k) {
      *reinterpret_cast<volatile unsigned long long *>(slots + k) = (1ull << 32) | bits.part[k];
    }
  }

  struct Answer {
    unsigned long long slot[kCount];
  };
  static __device__ __forceinline__ Answer ask(const unsigned long long *slots) {
    Answer answer;
    for (int k = 0; k < kCount; ++k) answer.slot[k] = *reinterpret_cast<const volatile unsigned long long *>(slots + k);
    return answer;
  }
  // False: it was not there yet.
  static __device__ __forceinline__ bool read(const Answer &answer, T &value) {
    Bits bits;
    bool there = true;
    for (int k = 0; k < kCount; ++k) {
      there = there && (answer.slot[k] >> 32) != 0;
      bits.part[k] = static_cast<unsigned>(answer.slot[k]);
    }
    if (there) value = bits.value;
    return there;
  }

  static __device__ __forceinline__ T wait(const unsigned long long *slots) {
    Bits bits;
    for (int k = 0; k < kCount; ++k) {
      unsigned long long slot;
      do {
        slot = *reinterpret_cast<const volatile unsigned long long *>(slots + k);
      } while ((slot >> 32) == 0);
      bits.part[k] = static_cast<unsigned>(slot);
    }
    return bits.value;
  }
};

}  // namespace pk
