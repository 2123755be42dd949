// check_memory.cpp: windows, variables and shadows of checked kernels.
#include "sim/check_memory.h"

#include <algorithm>

#include "sim/heap.h"
#include "sim/memory.h"
#include "sim/module.h"
#include "sim/pages.h"

namespace pygpukit::sim {
namespace {

constexpr size_t kMaxTombs = 64;
constexpr uint64_t kForeign = uint64_t{1} << 63;  // memory that no pool numbers goes by its address
constexpr uint64_t kPage = 4096;

unsigned ShiftOf(unsigned element_bytes) {
  return element_bytes >= 8 ? 3 : element_bytes >= 4 ? 2 : element_bytes >= 2 ? 1 : 0;
}
uint64_t Cells(const Region &region) { return (region.whole_bytes >> region.shift) + 1; }

void DropCells(Region *region) {
  if (region->cells) ReleaseRange(reinterpret_cast<char *>(region->cells), region->shadow_bytes);
  if (region->second) ReleaseRange(reinterpret_cast<char *>(region->second), region->shadow_bytes / 2);
  region->cells = nullptr;
  region->second = nullptr;
}

template <class Map>
auto Holding(Map &map, uintptr_t address) -> decltype(map.begin()) {
  auto at = map.upper_bound(address);
  return at == map.begin() ? map.end() : --at;
}

}  // namespace

CheckMemory::CheckMemory() {
  arena = reinterpret_cast<uintptr_t>(ReserveRange((kSlots + 1) * kSlotBytes));
  if (arena) arena = (arena + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
  std::fill(slots, slots + kSlots, &nothing);
}

bool CheckMemory::Prepare(const LaunchMemory &launch, Memory *memory, uint64_t number, std::string *why) {
  if (!arena) {
    *why = "the system refused the addresses (1 TiB, not memory) that checked kernels need: see ulimit -v";
    return false;
  }
  by_address_.clear();
  const auto add = [&](uint64_t id, uint64_t address, uint64_t bytes, const std::string &name) {
    std::unique_ptr<Region> &region = arrays_[id ? id : kForeign | address];
    if (region && (region->address != address || region->whole_bytes != bytes)) {
      Drop(region.get());
      region = nullptr;
    }
    if (!region) {
      region = std::make_unique<Region>();
      region->address = region->lo = address;
      region->bytes = region->open = region->whole_bytes = bytes;
    }
    region->used = number;
    region->name = name;
    region->views.clear();
    region->ranges.clear();
    region->from = 0;
    region->span = ~uint64_t{0};
    region->open = region->bytes;
    by_address_[address] = region.get();
    return region.get();
  };
  std::vector<Region *> described;
  for (const LaunchMemory::Array &array : launch.arrays) {
    described.push_back(add(array.id, array.address, array.bytes, array.name));
    if (array.freed) Bury(described.back());
  }
  if (!launch.described)
    for (const auto &[address, bytes] : memory->Mapped()) add(0, address, bytes, "");
  for (auto at = arrays_.begin(); at != arrays_.end();) {
    if (at->second->used == number) {
      ++at;
      continue;
    }
    if (at->second->slots) {
      Bury(at->second.get());
      tombs_.push_back(std::move(at->second));
    } else {
      Drop(at->second.get());
    }
    at = arrays_.erase(at);
  }
  for (; tombs_.size() > kMaxTombs; tombs_.erase(tombs_.begin())) Drop(tombs_.front().get());
  null_name.clear();
  unsigned nulls = 0;
  for (const LaunchMemory::Argument &argument : launch.arguments) {
    if (argument.array == UINT64_MAX) {
      null_name = nulls++ ? "" : argument.name;
      continue;
    }
    Region *region = described[argument.array];
    if (region->freed || region->bytes == 0) continue;
    if (!Place(region, memory, why)) return false;
    region->views.push_back({argument.name, static_cast<uintptr_t>(region->lo + (argument.address - region->address)),
                             argument.element_bytes, argument.bytes});
    if (!region->element_bytes && argument.element_bytes) {
      region->element_bytes = argument.element_bytes;
      if (!region->cells) region->shift = ShiftOf(argument.element_bytes);
    }
  }
  for (Region *region : described) Limit(region);
  return true;
}

void CheckMemory::Limit(Region *region) {
  if (region->views.empty()) return;
  for (const View &view : region->views) {
    const uint64_t offset = view.start - region->lo;
    if (view.bytes) region->ranges.emplace_back(offset, offset + view.bytes);
  }
  auto &ranges = region->ranges;
  std::sort(ranges.begin(), ranges.end());
  size_t kept = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first <= ranges[kept].second) {
      ranges[kept].second = std::max(ranges[kept].second, ranges[i].second);
    } else {
      ranges[++kept] = ranges[i];
    }
  }
  if (!ranges.empty()) ranges.resize(kept + 1);
  region->from = ranges.empty() ? 0 : ranges.front().first;
  region->span = ranges.empty() ? 0 : ranges.back().second - region->from;
  region->open = ranges.size() == 1 ? std::min(region->span, region->bytes - region->from) : 0;
}

bool CheckMemory::InRange(const Region &region, uint64_t offset, uint64_t bytes) {
  for (const auto &[start, end] : region.ranges)
    if (offset >= start && offset + bytes <= end) return true;
  return false;
}

uintptr_t CheckMemory::Translate(uintptr_t address) {
  const auto at = Holding(by_address_, address);
  if (at == by_address_.end() || !at->second->slots) return address;
  const Region &region = *at->second;
  return address - region.address <= region.bytes ? region.lo + (address - region.address) : address;
}

// ---- windows

bool CheckMemory::TakeSlots(Region *region) {
  const uint64_t needed = (region->bytes + 2 * kPage + 2 * kWindowMargin + kSlotBytes - 1) >> kSlotShift;
  size_t run = 0;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    run = slots[slot] == &nothing ? run + 1 : 0;
    if (run < needed) continue;
    region->slot = static_cast<unsigned>(slot + 1 - needed);
    region->slots = static_cast<unsigned>(needed);
    std::fill(slots + region->slot, slots + slot + 1, region);
    return true;
  }
  return false;
}

bool CheckMemory::Place(Region *region, Memory *memory, std::string *why) {
  if (!region->slots) {
    bool placed = TakeSlots(region);
    for (; !placed && !tombs_.empty(); placed = TakeSlots(region)) {
      Drop(tombs_.front().get());
      tombs_.erase(tombs_.begin());
    }
    if (!placed) {
      *why = "more arrays are passed to checked kernels than there are windows for (4096 of up to 128 MiB)";
      return false;
    }
    region->lo = arena + region->slot * kSlotBytes + kWindowMargin + region->address % kPage;
  }
  if (memory->MapAgain(region->address, region->bytes, reinterpret_cast<char *>(region->lo), &region->physical))
    return true;
  *why = "the system refused to map an array once more, as checked kernels need";
  return false;
}

// The window stays, inaccessible: whoever goes there uses memory after it was freed.
void CheckMemory::Bury(Region *region) {
  if (region->freed) return;
  if (region->slots) {
    const uintptr_t start = region->lo / kPage * kPage;
    UnmapMemory(reinterpret_cast<char *>(start), (region->lo + region->bytes + kPage - 1) / kPage * kPage - start);
  }
  region->freed = true;
  region->bytes = region->open = 0;
  DropCells(region);
}

void CheckMemory::Drop(Region *region) {
  Bury(region);
  if (region->slots) std::fill(slots + region->slot, slots + region->slot + region->slots, &nothing);
}

// ---- variables

void CheckMemory::Bind(const Module &module, char *thread_local_block, size_t bytes, char *dynamic_start,
                       uint64_t dynamic_bytes) {
  if (dynamic.lo != reinterpret_cast<uintptr_t>(dynamic_start) || dynamic.bytes != dynamic_bytes) {
    DropCells(&dynamic);
    dynamic = {};
    dynamic.kind = Region::kShared;
    dynamic.lo = reinterpret_cast<uintptr_t>(dynamic_start);
    dynamic.bytes = dynamic.open = dynamic.whole_bytes = dynamic_bytes;
  }
  dynamic.name.clear();
  const uintptr_t base = reinterpret_cast<uintptr_t>(thread_local_block);
  if (module_ == module.serial() && shared_base == base) return;
  module_ = module.serial();
  shared_base = base;
  shared_bytes = bytes;
  shared_owner.assign(bytes, 0);
  for (Region *region : shared) DropCells(region);
  for (const auto &[address, region] : variables_) DropCells(region.get());
  shared.clear();
  shared_.clear();
  variables_.clear();
  for (const Variable &variable : module.Variables()) {
    auto region = std::make_unique<Region>();
    region->name = variable.name;
    region->bytes = region->open = region->whole_bytes = variable.bytes;
    region->kind = variable.shared ? Region::kShared : Region::kVariable;
    if (variable.bytes % 4) region->shift = 0;
    if (!variable.shared) {
      region->lo = variable.place;
      if (!variable.own) variables_[variable.place] = std::move(region);
      continue;
    }
    if (variable.place > bytes || variable.bytes > bytes - variable.place) continue;
    region->lo = base + variable.place;
    if (variable.own) {
      std::fill_n(shared_owner.begin() + static_cast<ptrdiff_t>(variable.place), variable.bytes, kOwnVariable);
      continue;
    }
    std::fill_n(shared_owner.begin() + static_cast<ptrdiff_t>(variable.place), variable.bytes,
                static_cast<uint16_t>(shared.size() + 1));
    shared.push_back(region.get());
    shared_.push_back(std::move(region));
  }
}

Region *CheckMemory::Find(uintptr_t address, uint64_t *offset) {
  const auto array = Holding(by_address_, address);
  if (array != by_address_.end() && address - array->first < array->second->whole_bytes) {
    *offset = address - array->first;
    return array->second;
  }
  for (auto *map : {&variables_, &heap_}) {
    const auto entry = Holding(*map, address);
    if (entry == map->end() || address - entry->first >= entry->second->whole_bytes) continue;
    *offset = address - entry->first;
    return entry->second.get();
  }
  return nullptr;
}

Region *CheckMemory::Nearest(uintptr_t address) {
  Region *best = nullptr;
  uint64_t distance = kWindowMargin;
  const auto consider = [&](Region *region, uintptr_t start) {
    const uint64_t away = address < start ? start - address : address - (start + region->whole_bytes);
    if (away < distance) best = region, distance = away;
  };
  for (const auto &[start, region] : by_address_) consider(region, start);
  for (Region *region : shared) consider(region, region->lo);
  for (auto *map : {&variables_, &heap_})
    for (const auto &[start, region] : *map) consider(region.get(), start);
  return best;
}

void CheckMemory::AddHeap(uintptr_t address, uint64_t bytes) {
  auto region = std::make_unique<Region>();
  region->kind = Region::kHeap;
  region->lo = address;
  region->bytes = region->open = region->whole_bytes = bytes;
  region->shift = 0;
  if (bytes % 4 == 0) region->shift = 2;
  auto &place = heap_[address];
  if (place) DropCells(place.get());
  place = std::move(region);
}

bool CheckMemory::FreeHeap(uintptr_t address, bool *twice) {
  const auto entry = heap_.find(address);
  if (entry == heap_.end()) return false;
  *twice = entry->second->freed;
  entry->second->freed = true;
  entry->second->bytes = entry->second->open = 0;
  return true;
}

void CheckMemory::ClearHeap() {
  for (const auto &[address, region] : heap_) {
    DropCells(region.get());
    if (region->freed) HeapGive(reinterpret_cast<void *>(address));
  }
  heap_.clear();
}

// ---- shadows

bool CheckMemory::MakeCells(Region *region) {
  if (region->cells) return true;
  region->shadow_bytes = Cells(*region) * sizeof(Cell);
  region->cells = static_cast<Cell *>(ReserveZeros(region->shadow_bytes));
  return region->cells != nullptr;
}

bool CheckMemory::MakeSecond(Region *region) {
  if (!region->second) region->second = static_cast<Reader *>(ReserveZeros(region->shadow_bytes / 2));
  return region->second != nullptr;
}

bool CheckMemory::Refine(Region *region, unsigned shift) {
  if (shift >= region->shift) return true;
  const Region before = *region;
  region->cells = nullptr;
  region->second = nullptr;
  region->shift = shift;
  if (!before.cells) return true;
  const uint64_t parts = uint64_t{1} << (before.shift - shift);
  if (!MakeCells(region) || (before.second && !MakeSecond(region))) return false;
  const uint64_t cells = Cells(*region);
  for (uint64_t i = 0; i < Cells(before); ++i) {
    const Cell &cell = before.cells[i];
    if (!cell.writer && !cell.reader) continue;
    for (uint64_t part = i * parts; part < (i + 1) * parts && part < cells; ++part) {
      region->cells[part] = cell;
      if (before.second) region->second[part] = before.second[i];
    }
  }
  Region old = before;
  DropCells(&old);
  return true;
}

template <class Visit>
void CheckMemory::ForEach(Visit visit) {
  for (const auto &[id, region] : arrays_) visit(region.get());
  for (Region *region : shared) visit(region);
  for (auto *map : {&variables_, &heap_})
    for (const auto &[address, region] : *map) visit(region.get());
  visit(&dynamic);
}

void CheckMemory::ForgetShadows() { ForEach(DropCells); }

}  // namespace pygpukit::sim
