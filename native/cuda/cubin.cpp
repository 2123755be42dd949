// cubin.cpp: bounds of an ELF image, read field by field (offsets from the ELF64 layout, little endian).
#include "cuda/cubin.h"

#include <cstring>

namespace pk::cuda {

namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr uint32_t kSectionWithoutBytes = 8;  // SHT_NOBITS: occupies nothing in the file

template <typename T>
T read(const uint8_t *base, uint64_t offset) {
  T value;
  std::memcpy(&value, base + offset, sizeof(value));
  return value;
}

bool inside(uint64_t offset, uint64_t count, uint64_t each, uint64_t bytes) {
  if (offset > bytes) return false;
  return each == 0 || count <= (bytes - offset) / each;
}

}  // namespace

const char *cubin_fault(const void *image, uint64_t bytes) {
  const auto *base = static_cast<const uint8_t *>(image);
  if (image == nullptr || bytes < 64) return "the image is too short to be a CUBIN";
  if (std::memcmp(base, "\177ELF\2\1", 6) != 0) return "the image is not a CUBIN (no 64-bit ELF header)";
  if (read<uint16_t>(base, 18) != kMachineCuda) return "the image is an ELF file, but not for CUDA";
  const auto segments = read<uint64_t>(base, 32), sections = read<uint64_t>(base, 40);
  const auto segment_bytes = read<uint16_t>(base, 54), segment_count = read<uint16_t>(base, 56);
  const auto section_bytes = read<uint16_t>(base, 58), section_count = read<uint16_t>(base, 60);
  if (section_count == 0 || section_bytes < 64) return "the CUBIN has no sections";
  if (read<uint16_t>(base, 62) >= section_count) return "the CUBIN is damaged (no section names)";
  if (!inside(segments, segment_count, segment_bytes, bytes) ||
      !inside(sections, section_count, section_bytes, bytes)) {
    return "the CUBIN is truncated";
  }
  for (uint64_t index = 0; index < section_count; ++index) {
    const uint64_t header = sections + index * section_bytes;
    if (read<uint32_t>(base, header + 4) == kSectionWithoutBytes) continue;
    if (!inside(read<uint64_t>(base, header + 24), read<uint64_t>(base, header + 32), 1, bytes)) {
      return "the CUBIN is truncated";
    }
  }
  return nullptr;
}

}  // namespace pk::cuda
