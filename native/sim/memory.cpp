// memory.cpp: virtual memory of the simulated device: what cannot be reached is inaccessible, and guarded on both
// sides.
#include "sim/memory.h"

#include <mutex>

#include "sim/pages.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

typedef unsigned long long Number;

pk_status CheckSize(const char *what, uint64_t bytes) {
  if (bytes && bytes % kGranule == 0) return PK_OK;
  return Fail(PK_ERROR_INVALID_VALUE, Format("%s: %llu bytes is not a multiple of the granularity of %llu", what,
                                             static_cast<Number>(bytes), static_cast<Number>(kGranule)));
}

}  // namespace

pk_status Memory::Reserve(uint64_t bytes, uint64_t *address) {
  if (pk_status bad = CheckSize("address_reserve", bytes)) return bad;
  // One granule of guard on each side, and one more to align.
  const uint64_t whole = bytes + 3 * kGranule;
  char *start = whole > bytes ? ReserveApart(whole) : nullptr;
  if (!start)
    return Fail(PK_ERROR_OUT_OF_MEMORY,
                Format("the system refused to reserve %llu bytes of addresses", static_cast<Number>(bytes)));
  *address = (reinterpret_cast<uint64_t>(start) + 2 * kGranule - 1) / kGranule * kGranule;
  std::unique_lock guard(*lock_);
  ranges_[*address] = {start, whole, bytes};
  return PK_OK;
}

pk_status Memory::Free(uint64_t address, uint64_t bytes) {
  std::unique_lock guard(*lock_);
  const auto at = ranges_.find(address);
  if (at == ranges_.end() || at->second.bytes != bytes)
    return Fail(PK_ERROR_INVALID_VALUE, Format("address_free: 0x%llx with %llu bytes is not a reserved range",
                                               static_cast<Number>(address), static_cast<Number>(bytes)));
  if (Overlaps(address, bytes))
    return Fail(PK_ERROR_INVALID_VALUE,
                Format("address_free: memory is still mapped in the range at 0x%llx", static_cast<Number>(address)));
  ReleaseRange(at->second.start, at->second.whole_bytes);
  ranges_.erase(at);
  return PK_OK;
}

// With the lock.
pk_status Memory::CheckRoom(uint64_t bytes) const {
  const uint64_t free = total_bytes_ - used_bytes_.load(std::memory_order_relaxed);
  if (bytes <= free) return PK_OK;
  return Fail(PK_ERROR_OUT_OF_MEMORY,
              Format("out of memory on the simulated device: %llu bytes asked, %llu of %llu free",
                     static_cast<Number>(bytes), static_cast<Number>(free), static_cast<Number>(total_bytes_)));
}

pk_status Memory::TakeArray(uint64_t bytes) {
  std::unique_lock guard(*lock_);
  if (pk_status bad = CheckRoom(bytes)) return bad;
  used_bytes_ += bytes;
  created_bytes_ += bytes;
  return PK_OK;
}

void Memory::GiveArray(uint64_t bytes) { used_bytes_ -= bytes; }

pk_status Memory::Adopt(int descriptor, uint64_t bytes, uint64_t *physical) {
  std::unique_lock guard(*lock_);
  if (pk_status bad = CheckRoom(bytes)) return bad;
  if (descriptor < 0) descriptor = CreateMemory(bytes);
  if (descriptor < 0)
    return Fail(PK_ERROR_OUT_OF_MEMORY, Format("the system refused %llu bytes of memory", static_cast<Number>(bytes)));
  used_bytes_ += bytes;
  created_bytes_ += bytes;
  *physical = next_physical_++;
  physicals_[*physical] = {descriptor, bytes, 0, false};
  return PK_OK;
}

pk_status Memory::Create(uint64_t bytes, uint64_t *physical) {
  if (pk_status bad = CheckSize("physical_create", bytes)) return bad;
  return Adopt(-1, bytes, physical);
}

pk_status Memory::Import(int32_t descriptor, uint64_t bytes, uint64_t *physical) {
  if (pk_status bad = CheckSize("physical_import", bytes)) return bad;
  if (DescriptorBytes(descriptor) != bytes)
    return Fail(
        PK_ERROR_INVALID_VALUE,
        Format("physical_import: descriptor %d holds %llu bytes, %llu were announced", static_cast<int>(descriptor),
               static_cast<Number>(DescriptorBytes(descriptor)), static_cast<Number>(bytes)));
  const int own = DuplicateDescriptor(descriptor);
  if (own < 0) return Fail(PK_ERROR_INVALID_VALUE, "physical_import: the descriptor cannot be duplicated");
  const pk_status status = Adopt(own, bytes, physical);
  if (status != PK_OK) CloseDescriptor(own);
  return status;
}

pk_status Memory::Export(uint64_t physical, int32_t *descriptor) {
  std::shared_lock guard(*lock_);
  const auto at = physicals_.find(physical);
  if (at == physicals_.end()) return Fail(PK_ERROR_INVALID_HANDLE, "physical_export: no such physical memory");
  *descriptor = DuplicateDescriptor(at->second.descriptor);
  return *descriptor >= 0 ? PK_OK : Fail(PK_ERROR_UNKNOWN, "physical_export: the system refused another descriptor");
}

pk_status Memory::Release(uint64_t physical) {
  std::unique_lock guard(*lock_);
  const auto at = physicals_.find(physical);
  if (at == physicals_.end() || at->second.released)
    return Fail(PK_ERROR_INVALID_HANDLE, "physical_release: no such physical memory");
  at->second.released = true;
  DropIfUnused(at);
  return PK_OK;
}

// Released memory lives on while it is mapped.
void Memory::DropIfUnused(std::map<uint64_t, Physical>::iterator at) {
  if (!at->second.released || at->second.mappings) return;
  CloseDescriptor(at->second.descriptor);
  used_bytes_ -= at->second.bytes;
  physicals_.erase(at);
}

const Memory::Range *Memory::Holding(uint64_t address, uint64_t bytes) const {
  auto at = ranges_.upper_bound(address);
  if (at == ranges_.begin()) return nullptr;
  --at;
  const uint64_t offset = address - at->first;
  return offset <= at->second.bytes && bytes <= at->second.bytes - offset ? &at->second : nullptr;
}

bool Memory::Overlaps(uint64_t address, uint64_t bytes) const {
  auto at = mappings_.lower_bound(address);
  if (at != mappings_.end() && at->first < address + bytes) return true;
  return at != mappings_.begin() && (--at)->first + at->second.bytes > address;
}

pk_status Memory::Map(uint64_t address, uint64_t bytes, uint64_t physical) {
  std::unique_lock guard(*lock_);
  const auto at = physicals_.find(physical);
  if (at == physicals_.end() || at->second.released)
    return Fail(PK_ERROR_INVALID_HANDLE, "map: no such physical memory");
  if (address % kGranule || at->second.bytes != bytes || !Holding(address, bytes) || Overlaps(address, bytes))
    return Fail(
        PK_ERROR_INVALID_VALUE,
        Format("map: %llu bytes at 0x%llx: the range must be reserved, aligned, free, and as large as the physical "
               "memory (%llu bytes)",
               static_cast<Number>(bytes), static_cast<Number>(address), static_cast<Number>(at->second.bytes)));
  if (!MapMemory(reinterpret_cast<char *>(address), bytes, at->second.descriptor))
    return Fail(PK_ERROR_OUT_OF_MEMORY, Format("the system refused to map %llu bytes", static_cast<Number>(bytes)));
  mappings_[address] = {bytes, physical};
  ++at->second.mappings;
  return PK_OK;
}

pk_status Memory::Unmap(uint64_t address, uint64_t bytes) {
  std::unique_lock guard(*lock_);
  // Only whole mappings: look before touching anything.
  uint64_t end = address;
  auto last = mappings_.find(address);
  while (last != mappings_.end() && last->first == end && end < address + bytes && last->second.physical) {
    end += last->second.bytes;
    ++last;
  }
  if (end == address || end != address + bytes)
    return Fail(PK_ERROR_INVALID_VALUE, Format("unmap: %llu bytes at 0x%llx is not made of whole mappings",
                                               static_cast<Number>(bytes), static_cast<Number>(address)));
  if (!UnmapMemory(reinterpret_cast<char *>(address), bytes))
    return Fail(PK_ERROR_UNKNOWN, Format("the system refused to unmap %llu bytes", static_cast<Number>(bytes)));
  for (auto at = mappings_.find(address); at != last; at = mappings_.erase(at)) {
    const auto physical = physicals_.find(at->second.physical);
    --physical->second.mappings;
    DropIfUnused(physical);
  }
  return PK_OK;
}

void Memory::Info(uint64_t *free_bytes, uint64_t *total_bytes) {
  *total_bytes = total_bytes_;
  *free_bytes = total_bytes_ - used_bytes_.load(std::memory_order_relaxed);
}

void Memory::AddModuleRange(uint64_t address, uint64_t bytes) {
  std::unique_lock guard(*lock_);
  mappings_[address] = {bytes, 0};
}

void Memory::RemoveModuleRange(uint64_t address) {
  std::unique_lock guard(*lock_);
  mappings_.erase(address);
}

bool Memory::MapAgain(uint64_t address, uint64_t bytes, char *at, uint64_t *physical) {
  std::shared_lock guard(*lock_);
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) return false;
  --mapping;
  const uint64_t offset = address - mapping->first;
  if (!mapping->second.physical || offset >= mapping->second.bytes || bytes > mapping->second.bytes - offset)
    return false;
  if (*physical == mapping->second.physical) return true;
  *physical = mapping->second.physical;
  return MapPages(at, bytes, physicals_.at(*physical).descriptor, offset);
}

std::vector<std::pair<uint64_t, uint64_t>> Memory::Mapped() const {
  std::shared_lock guard(*lock_);
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (const auto &[address, mapping] : mappings_)
    if (mapping.physical) all.emplace_back(address, mapping.bytes);
  return all;
}

std::string Memory::CheckLocked(uint64_t address, uint64_t bytes) const {
  const uint64_t end = address + bytes;
  uint64_t good = address;
  auto at = mappings_.upper_bound(address);
  if (at != mappings_.begin()) --at;
  for (; at != mappings_.end() && at->first <= good && good < end; ++at)
    if (at->first + at->second.bytes > good) good = at->first + at->second.bytes;
  if (end >= address && good >= end) return "";
  const Range *range = Holding(address, 0);
  return Format("%llu bytes at 0x%llx are not all memory of the device: nothing is mapped at 0x%llx (%s)",
                static_cast<Number>(bytes), static_cast<Number>(address), static_cast<Number>(good),
                range ? "a reserved address" : "not an address of the device");
}

std::string Memory::Check(uint64_t address, uint64_t bytes) {
  std::shared_lock guard(*lock_);
  return CheckLocked(address, bytes);
}

}  // namespace pygpukit::sim
