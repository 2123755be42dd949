// division.cpp: reads the one instruction that was interrupted, after the Intel manual's chapter on its format.
#include "sim/division.h"

#include <ucontext.h>

#include <cstdint>
#include <cstring>

namespace pygpukit::sim {

#if defined(__linux__) && defined(__x86_64__)

bool FinishDivision(void *context) {
  static constexpr int kRegisters[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                       REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  const auto *at = reinterpret_cast<const uint8_t *>(registers[REG_RIP]);
  const auto value = [&](unsigned number) { return static_cast<uint64_t>(registers[kRegisters[number]]); };
  unsigned rex = 0;
  if ((*at & 0xf0) == 0x40) rex = *at++;
  if (*at++ != 0xf7) return false;  // of 32 or 64 bits, without a prefix
  const unsigned form = *at++, mode = form >> 6;
  if ((form >> 3 & 7) != 7) return false;  // idiv
  const unsigned low = form & 7, register_bit = (rex & 1) << 3;
  const bool wide = rex & 8;
  uint64_t divisor = 0;
  if (mode == 3) {
    divisor = value(low | register_bit);
  } else {
    uint64_t address = 0;
    unsigned base = low;
    bool relative = false, none = false;
    if (low == 4) {  // a byte with base and index
      const unsigned sib = *at++, index = (sib >> 3 & 7) | (rex & 2) << 2;
      base = sib & 7;
      if (index != 4) address = value(index) << (sib >> 6);
      none = mode == 0 && base == 5;
    } else {
      relative = mode == 0 && low == 5;
    }
    if (!relative && !none) address += value(base | register_bit);
    if (mode == 1) address += static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(*at++)));
    if (mode == 2 || relative || none) {
      int32_t distance;
      memcpy(&distance, at, 4);
      at += 4;
      address += static_cast<uint64_t>(static_cast<int64_t>(distance));
    }
    if (relative) address += reinterpret_cast<uintptr_t>(at);
    memcpy(&divisor, reinterpret_cast<const void *>(address), wide ? 8 : 4);
  }
  const uint64_t lowest = uint64_t{1} << (wide ? 63 : 31), mask = lowest | (lowest - 1);
  if ((divisor & mask) != mask || (value(0) & mask) != lowest) return false;
  registers[REG_RAX] = static_cast<greg_t>(lowest);
  registers[REG_RDX] = 0;
  registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(at));
  return true;
}

#else

bool FinishDivision(void *) { return false; }

#endif

}  // namespace pygpukit::sim
