// checked.cpp: the table of arrays for a checked launch, and the quarantine of freed blocks.
#include "bindings/checked.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "launch/ordered.h"
#include "sim/sim.h"

namespace pk {
namespace {

constexpr uint64_t kUnitBytes = 256;        // what the pool rounds to at least
constexpr uint64_t kSmallBytes = 64 << 10;  // below it arrays get room for a zone; larger ones keep their exact size
constexpr size_t kMaxBlocks = 64;
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

struct Freed {
  uint64_t pool, block, address, bytes;
  std::string name;
};
// All under the GIL.
std::deque<Freed> *g_freed = new std::deque<Freed>;
uint64_t g_freed_bytes = 0;
int g_checked_kernels = 0;

// Of the process: a block's id is unique in its pool, a pool's handle is an address.
uint64_t allocation_id(uint64_t pool, uint64_t block) { return block == 0 ? 0 : block ^ pool << 12; }

std::string name_of(uint64_t pool, uint64_t block) {
  char text[128];
  const uint64_t length = block == 0 ? 0 : pk_name_text(pk_pool_name(pool, block), text, sizeof text);
  return std::string(text, std::min<uint64_t>(length, sizeof text));
}

void free_first() {
  const Freed first = g_freed->front();
  g_freed->pop_front();
  g_freed_bytes -= first.bytes;
  if (!forked()) pk_pool_free(first.pool, first.block);
}

}  // namespace

bool is_checked(uint64_t function) { return driver_name() == "sim" && pk_sim_checked(function) != 0; }

void note_checked_kernel() { ++g_checked_kernels; }

void checked_kernel_gone() {
  if (--g_checked_kernels == 0) release_quarantine();
}

bool quarantine(const Storage &storage) {
  if (__builtin_expect(g_checked_kernels == 0, 1) || storage.bytes > kMaxBytes) return false;
  g_freed->push_back(
      {storage.pool, storage.block, storage.address, storage.bytes, name_of(storage.pool, storage.block)});
  g_freed_bytes += storage.bytes;
  while (g_freed->size() > kMaxBlocks || g_freed_bytes > kMaxBytes) free_first();
  return true;
}

bool release_quarantine() {
  const bool any = !g_freed->empty();
  while (!g_freed->empty()) free_first();
  return any;
}

static uint64_t g_guard_bytes = 0;
static bool g_watches = false;

void read_guard() {
  g_watches = driver_name() == "sim";
  g_guard_bytes = g_watches ? pk_sim_guard_bytes() : 0;
}

uint64_t guard_of(uint64_t bytes) { return bytes < kSmallBytes ? g_guard_bytes : 0; }

void watch_zones(const std::vector<Param> &params, PyObject *const *values) {
  if (!g_watches) return;
  std::vector<pk_sim_zone> zones;
  std::deque<std::string> names;  // stay where they are
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].kind != ParamKind::kPointer || values[i] == Py_None) continue;
    const ArrayObject *array = as_array(values[i]);
    const Storage &storage = *array->storage;
    const uint64_t whole =
        (std::max<uint64_t>(storage.bytes + guard_of(storage.bytes), 1) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
    if (storage.block == 0 || whole == storage.bytes) continue;
    names.push_back(name_of(storage.pool, storage.block));
    zones.push_back({storage.address + storage.bytes, whole - storage.bytes, storage.bytes,
                     static_cast<uint32_t>(itemsize_of(array)), params[i].name.c_str(), names.back().c_str()});
  }
  pk_sim_watch_zones(zones.data(), zones.size());
}

void forget_zones() {
  if (g_watches) pk_sim_watch_zones(nullptr, 0);
}

void describe_launch(const std::vector<Param> &params, PyObject *const *values) {
  std::vector<pk_sim_array> arrays;
  std::deque<std::string> names;  // stay where they are
  std::unordered_map<const Storage *, uint64_t> numbers;
  for (const Storage *storage = all_storages(); storage != nullptr; storage = storage->next) {
    if (storage->device != t_state.device) continue;
    numbers[storage] = arrays.size();
    names.push_back(name_of(storage->pool, storage->block));
    arrays.push_back(
        {allocation_id(storage->pool, storage->block), storage->address, storage->bytes, 0, names.back().c_str()});
  }
  for (const Freed &freed : *g_freed)
    arrays.push_back({allocation_id(freed.pool, freed.block), freed.address, freed.bytes, 1, freed.name.c_str()});
  // A structure may hold addresses of its own: then nothing says what of an array the kernel was given.
  const bool passes_addresses =
      std::any_of(params.begin(), params.end(), [](const Param &one) { return one.kind == ParamKind::kStruct; });
  std::vector<pk_sim_argument> arguments;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].kind != ParamKind::kPointer) continue;
    if (values[i] == Py_None) {
      arguments.push_back({static_cast<uint32_t>(i), 0, params[i].name.c_str(), UINT64_MAX, 0, 0});
      continue;
    }
    const ArrayObject *array = as_array(values[i]);
    arguments.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(itemsize_of(array)), params[i].name.c_str(),
                         numbers.at(array->storage), passes_addresses ? array->storage->address : address_of(array),
                         passes_addresses ? array->storage->bytes : static_cast<uint64_t>(nbytes_of(array))});
  }
  pk_sim_describe(arrays.data(), arrays.size(), arguments.data(), arguments.size());
}

}  // namespace pk
