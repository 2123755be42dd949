// allocations.cpp: the program's memory by address; device memory is closed to the host on the simulation.
#include "program/allocations.h"

#include <sys/mman.h>

#include <algorithm>

#include "program/report.h"

namespace pk::program {
namespace {

// How many that are freed are remembered.
constexpr size_t kRememberedFreed = 4096;

struct Allocations {
  std::map<uint64_t, Allocation> held;
  std::map<uint64_t, Freed> freed;
  uint64_t serial = 0;
  unsigned open = 0;  // gates
};

Allocations &allocations() {
  static Allocations &only = *new Allocations;
  return only;
}

const char *call_of(Kind kind) {
  switch (kind) {
    case Kind::kDevice:
      return "cudaMalloc";
    case Kind::kManaged:
      return "cudaMallocManaged";
    case Kind::kPinned:
      return "cudaHostAlloc";
    case Kind::kRegistered:
      return "cudaHostRegister";
    case Kind::kSymbol:
      return "a variable";
  }
  return "";
}

bool closes(const Allocation &allocation) { return state().simulated && allocation.kind == Kind::kDevice; }

void protect(const Allocation &allocation, int rights) {
  if (closes(allocation)) mprotect(reinterpret_cast<void *>(allocation.address), allocation.whole_bytes, rights);
}

uint64_t rounded(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Memory with addresses of its own, so that what is freed is no more there, and nothing lies behind it.
cudaError_t map_new(Allocation *made) {
  uint64_t unit = 0;
  cudaError_t failed = check(driver().granularity(&unit));
  if (failed != cudaSuccess) return failed;
  if (made->bytes > UINT64_MAX - unit) return fail(cudaErrorMemoryAllocation, "no device has so many bytes");
  made->whole_bytes = rounded(made->bytes, unit);
  if ((failed = check(driver().physical_create(made->whole_bytes, &made->physical))) != cudaSuccess) return failed;
  failed = check(driver().address_reserve(made->whole_bytes, &made->address));
  if (failed == cudaSuccess) {
    failed = check(driver().map(made->address, made->whole_bytes, made->physical));
    if (failed == cudaSuccess) return cudaSuccess;
    driver().address_free(made->address, made->whole_bytes);
  }
  driver().physical_release(made->physical);
  return failed;
}

}  // namespace

cudaError_t allocate(Kind kind, uint64_t bytes, Allocation *made) {
  *made = {kind, 0, bytes, 0, 0, thread().device, thread().place, ++allocations().serial};
  if (kind == Kind::kPinned) {
    void *host = nullptr;
    const cudaError_t failed = check(driver().host_alloc(bytes, &host));
    if (failed != cudaSuccess) return failed;
    made->address = reinterpret_cast<uint64_t>(host);
  } else if (kind == Kind::kManaged) {
    made->whole_bytes = bytes;
    if (const cudaError_t failed = check(driver().managed_alloc(bytes, &made->address)); failed != cudaSuccess)
      return failed;
  } else if (const cudaError_t failed = map_new(made); failed != cudaSuccess) {
    return failed;
  }
  device().used = true;
  add_allocation(*made);
  return cudaSuccess;
}

void add_allocation(const Allocation &allocation) {
  auto &freed = allocations().freed;
  for (auto at = freed.lower_bound(allocation.address);
       at != freed.end() && at->first < allocation.address + allocation.bytes;)
    at = freed.erase(at);
  allocations().held[allocation.address] = allocation;
  if (allocations().open == 0) protect(allocation, PROT_NONE);
}

void forget_allocation(const Allocation &allocation) {
  const Allocation was = allocation;
  allocations().held.erase(was.address);
  if (allocations().freed.size() >= kRememberedFreed) allocations().freed.erase(allocations().freed.begin());
  allocations().freed[was.address] = {was, thread().place};
}

cudaError_t release(const Allocation &allocation) {
  const Allocation was = allocation;
  forget_allocation(allocation);
  if (was.kind == Kind::kRegistered) return check(driver().host_unregister(reinterpret_cast<void *>(was.address)));
  if (was.kind == Kind::kManaged) return check(driver().managed_free(was.address, was.bytes));
  if (was.kind == Kind::kPinned) return check(driver().host_free(reinterpret_cast<void *>(was.address)));
  const int current = thread().device;
  cudaError_t failed = was.device == current ? cudaSuccess : check(driver().device_use(was.device));
  if (failed == cudaSuccess) failed = check(driver().unmap(was.address, was.whole_bytes));
  if (failed == cudaSuccess) failed = check(driver().physical_release(was.physical));
  if (failed == cudaSuccess) failed = check(driver().address_free(was.address, was.whole_bytes));
  if (was.device != current) driver().device_use(current);
  return failed;
}

const Allocation *find_allocation(uint64_t address) {
  auto &held = allocations().held;
  auto next = held.upper_bound(address);
  if (next == held.begin()) return nullptr;
  const Allocation &before = std::prev(next)->second;
  return address - before.address <= before.bytes ? &before : nullptr;
}

const Freed *find_freed(uint64_t address) {
  auto &freed = allocations().freed;
  auto next = freed.upper_bound(address);
  if (next == freed.begin()) return nullptr;
  const Freed &before = std::prev(next)->second;
  return address - before.was.address < std::max<uint64_t>(before.was.bytes, 1) ? &before : nullptr;
}

std::string describe_address(uint64_t address) {
  const auto origin = [](const Allocation &of) {
    return "the " + std::to_string(of.bytes) + " bytes of " + call_of(of.kind) + " at " + of.place.text();
  };
  if (const Freed *freed = find_freed(address))
    return "in " + origin(freed->was) + ", which were freed at " + freed->place.text();
  const Allocation *best = nullptr;
  auto &held = allocations().held;
  auto next = held.upper_bound(address);
  if (next != held.begin()) best = &std::prev(next)->second;
  constexpr uint64_t kNear = 64 << 20;
  if (best != nullptr && address - best->address < best->bytes)
    return std::to_string(address - best->address) + " bytes into " + origin(*best);
  if (best != nullptr && address - best->address - best->bytes < kNear)
    return std::to_string(address - best->address - best->bytes) + " bytes past the end of " + origin(*best);
  if (next != held.end() && next->first - address < kNear)
    return std::to_string(next->first - address) + " bytes before the start of " + origin(next->second);
  return "";
}

std::vector<Allocation> all_allocations() {
  std::vector<Allocation> all;
  for (const auto &[address, allocation] : allocations().held) all.push_back(allocation);
  return all;
}

void tell_leaks() {
  struct Leak {
    uint64_t count = 0, bytes = 0;
    Place place;
    Kind kind = Kind::kDevice;
  };
  std::map<std::string, Leak> leaks;
  for (const auto &[address, allocation] : allocations().held) {
    if (allocation.kind == Kind::kRegistered || allocation.kind == Kind::kSymbol) continue;
    Leak &leak = leaks[allocation.place.text() + call_of(allocation.kind)];
    ++leak.count;
    leak.bytes += allocation.bytes;
    leak.place = allocation.place;
    leak.kind = allocation.kind;
  }
  for (const auto &[key, leak] : leaks)
    tell_finding("leak",
                 std::to_string(leak.bytes) + " bytes of " + call_of(leak.kind) +
                     (leak.count > 1 ? ", " + std::to_string(leak.count) + " times," : "") + " were never freed",
                 leak.place);
}

Gate::Gate() : one_(nullptr), all_(true) {
  if (allocations().open++ == 0)
    for (const auto &[address, allocation] : allocations().held) protect(allocation, PROT_READ | PROT_WRITE);
}

Gate::Gate(const Allocation *allocation) : one_(allocation), all_(false) {
  if (one_ != nullptr && allocations().open == 0) protect(*one_, PROT_READ | PROT_WRITE);
}

Gate::~Gate() {
  if (one_ != nullptr && allocations().open == 0) protect(*one_, PROT_NONE);
  if (all_ && --allocations().open == 0)
    for (const auto &[address, allocation] : allocations().held) protect(allocation, PROT_NONE);
}

const Allocation *find_closed(uint64_t address) {
  const Allocation *found = find_allocation(address);
  if (found == nullptr || !closes(*found) || allocations().open > 0) return nullptr;
  return found;
}

}  // namespace pk::program
