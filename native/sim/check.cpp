// check.cpp: what happens before every access of a checked kernel.
#include "sim/check.h"

#include <algorithm>
#include <cstring>

#include "sim/core.h"
#include "sim/memory.h"
#include "sim/module.h"
#include "sim/state.h"

namespace pygpukit::sim {
namespace {

// What the hot path reads, in one place: Checker::Publish().
struct Hot {
  uintptr_t arena = 0;
  Region *const *slots = nullptr;
  uintptr_t code = 0;  // where the image is
  uint32_t me = 0, floor = 0, block_base = 0;
  uint32_t interval = 0;  // ids from block_base to the last barrier
  bool slow = false;      // every access must be looked at closely
  uintptr_t shared_base = 0, shared_bytes = 0, dynamic_base = 0, dynamic_bytes = 0;
  const uint16_t *owner = nullptr;
  Region *const *shared = nullptr;
  Region *dynamic = nullptr;
};
Hot hot;

Checker &TheChecker() {
  static Checker &checker = *new Checker;
  return checker;
}
Checker *checker = nullptr;

uint32_t SiteOf(const void *from) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) - hot.code) & (kSiteIsLine - 1);
}

bool Writes(pk_sim_access kind) { return kind != PK_SIM_READ && kind != PK_SIM_STRONG_READ; }
bool Reads(pk_sim_access kind) { return kind == PK_SIM_READ || kind == PK_SIM_STRONG_READ || kind >= PK_SIM_ATOMIC; }

constexpr uint32_t kVolatile = 1u << 26;

// ---- the hot path: an element of an array in a window, or of shared memory, that only barriers are needed to order

Region *InWindow(uintptr_t address) {
  const uintptr_t slot = (address - hot.arena) >> kSlotShift;
  return __builtin_expect(slot < kSlots, 1) ? hot.slots[slot] : nullptr;
}

Region *InShared(uintptr_t address) {
  if (address - hot.shared_base < hot.shared_bytes) {
    const uint16_t owner = hot.owner[address - hot.shared_base];
    return owner && owner != kOwnVariable ? hot.shared[owner - 1] : nullptr;
  }
  return address - hot.dynamic_base < hot.dynamic_bytes ? hot.dynamic : nullptr;
}

template <unsigned log2>
bool Inside(const Region &region, uintptr_t address) {
  constexpr unsigned bytes = 1u << log2;
  const uintptr_t offset = address - region.lo - region.from;
  return offset < region.open && region.open - offset >= bytes && !(address & (bytes - 1));
}

// Whether no access with this id is unordered: it is an old one, our own, or before the block's last barrier.
bool Ordered(uint32_t id, uint32_t floor) { return id < floor || id == hot.me || id - hot.block_base < hot.interval; }

// False: it must be looked at closely.
template <unsigned log2, bool write, bool shared>
bool Quick(Region *region, uintptr_t address, const void *from) {
  if (hot.slow || region->shift != log2 || !region->cells) return false;
  const uintptr_t at = (address - region->lo) >> log2;
  Cell &cell = region->cells[at];
  const uint32_t floor = shared ? hot.block_base : hot.floor;
  if (!(shared && !write) && (cell.writer < floor) & (cell.reader < floor)) {  // nobody was here before
    if (write) {
      cell = {hot.me, SiteOf(from), 0, 0};
    } else {
      cell.reader = hot.me;
      cell.reader_site = SiteOf(from);
    }
    return true;
  }
  if (!Ordered(cell.writer, floor) || (shared && !write && cell.writer < floor)) return false;
  const bool many = cell.reader >= floor && (cell.reader_site & kMany);
  if (write) {
    if (!Ordered(cell.reader, floor) || (many && !Ordered(region->second[at].id, floor))) return false;
    cell = {hot.me, SiteOf(from), 0, 0};
    return true;
  }
  if (cell.reader == hot.me) return true;
  if (!Ordered(cell.reader, floor)) return many && !Ordered(region->second[at].id, floor);
  cell.reader = hot.me;
  cell.reader_site = SiteOf(from) | (many && !Ordered(region->second[at].id, floor) ? kMany : 0);
  return true;
}

template <unsigned log2, bool write>
void OnElement(const void *pointer, const void *from) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (Region *region = InWindow(address)) {
    if (__builtin_expect(Inside<log2>(*region, address) && Quick<log2, write, false>(region, address, from), 1)) return;
  } else if ((region = InShared(address))) {
    if (__builtin_expect(Inside<log2>(*region, address) && Quick<log2, write, true>(region, address, from), 1)) return;
  }
  checker->Access(address, 1u << log2, write ? PK_SIM_WRITE : PK_SIM_READ, SiteOf(from));
}
template <unsigned log2>
void OnRead(const void *pointer, const void *from) {
  OnElement<log2, false>(pointer, from);
}
template <unsigned log2>
void OnWrite(const void *pointer, const void *from) {
  OnElement<log2, true>(pointer, from);
}

// Without races only the place counts.
template <unsigned log2, pk_sim_access kind>
void OnPlace(const void *pointer, const void *from) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  const Region *region = InWindow(address);
  if (!region) region = InShared(address);
  if (__builtin_expect(!region || !Inside<log2>(*region, address), 0))
    checker->Access(address, 1u << log2, kind, SiteOf(from));
}

template <unsigned log2, pk_sim_access kind>
void OnCount(const void *pointer, const void *from) {
  checker->Access(reinterpret_cast<uintptr_t>(pointer), 1u << log2, kind, SiteOf(from));
}

void OnFragment(const void *elements, unsigned bytes, unsigned element_bytes, const char *file, int line) {
  checker->Fragment(reinterpret_cast<uintptr_t>(elements), bytes, element_bytes, file, line);
}

void OnAccess(const void *address, pk_sim_u64 bytes, pk_sim_access kind, const void *from, const char *file, int line) {
  const uint32_t site = from ? SiteOf(from) : checker->SiteOfLine(file, line);
  checker->Access(reinterpret_cast<uintptr_t>(address), bytes, kind, site);
}
void OnFence() { checker->Fence(); }
void OnBeginBlock(pk_sim_u64 block) { checker->BeginBlock(block); }
void OnBeginThread(unsigned thread) { checker->BeginThread(thread); }
void OnDynamicName(const char *name, unsigned bytes) { checker->DynamicName(name, bytes); }
void OnIndex(const char *type, long long index, const char *file, int line, int column) {
  checker->Index(type, index, checker->SiteOfLine(file, line), column);
}
void OnMisaligned(const void *address, unsigned alignment, const char *type, const char *file, int line) {
  checker->Misaligned(reinterpret_cast<uintptr_t>(address), alignment, type, checker->SiteOfLine(file, line));
}
void OnDividedByZero(const char *file, int line) { checker->DividedByZero(checker->SiteOfLine(file, line)); }

void OnOutOfSteps(const void *from) { checker->OutOfSteps(SiteOf(from)); }

#define PK_TABLE(...)                                                                                                 \
  {                                                                                                                   \
    sizeof(pk_sim_check_api), 0, __VA_ARGS__, OnAccess, OnFence, OnBeginBlock, OnBeginThread, OnDynamicName, OnIndex, \
        OnMisaligned, OnDividedByZero, OnOutOfSteps, OnFragment                                                       \
  }
#define PK_ALL_SIZES(f, ...) \
  { f<0, ##__VA_ARGS__>, f<1, ##__VA_ARGS__>, f<2, ##__VA_ARGS__>, f<3, ##__VA_ARGS__>, f<4, ##__VA_ARGS__> }
const pk_sim_check_api kAll = PK_TABLE(PK_ALL_SIZES(OnRead), PK_ALL_SIZES(OnWrite));
const pk_sim_check_api kMemory = PK_TABLE(PK_ALL_SIZES(OnPlace, PK_SIM_READ), PK_ALL_SIZES(OnPlace, PK_SIM_WRITE));
const pk_sim_check_api kCount = PK_TABLE(PK_ALL_SIZES(OnCount, PK_SIM_READ), PK_ALL_SIZES(OnCount, PK_SIM_WRITE));
#undef PK_ALL_SIZES
#undef PK_TABLE

}  // namespace

Checker &Checker::Get() { return TheChecker(); }

const pk_sim_check_api &Checker::Api(pk_sim_check_mode mode) {
  return mode == PK_SIM_CHECK_COUNT ? kCount : mode == PK_SIM_CHECK_MEMORY ? kMemory : kAll;
}

// ---- launches

bool Checker::Begin(const KernelRun &run, const LaunchMemory &launch, Memory *memory, std::string *why) {
  checker = this;
  if (!memory_.Prepare(launch, memory, ++launches_, why)) return false;
  run_ = &run;
  module_ = run.module;
  mode_ = module_->check()->mode;
  if (module_->check()->steps) *module_->check()->steps = module_->check()->step_limit;
  files_[0] = module_->check()->file;
  file_count_ = 1;
  for (const LaunchMemory::Argument &argument : launch.arguments) {
    if (argument.array == UINT64_MAX || argument.parameter >= run.kernel->parameter_count ||
        run.kernel->parameter_bytes[argument.parameter] != 8)
      continue;
    uint64_t address;
    memcpy(&address, run.arguments[argument.parameter], sizeof address);
    address = memory_.Translate(address);
    memcpy(run.arguments[argument.parameter], &address, sizeof address);
  }
  if (order_.exhausted()) {
    memory_.ForgetShadows();
    order_.Restart();
  }
  order_.BeginLaunch(run.block.x * run.block.y * run.block.z);
  unwritten_ = {};
  rewrite_.waits = false;
  fragments_.Clear();
  Publish();
  return true;
}

void Checker::End() {
  memory_.ClearHeap();
  if (module_ && module_->check()->flops) {
    traffic.flops += *module_->check()->flops;
    *module_->check()->flops = 0;
  }
  if (module_ && module_->check()->steps) *module_->check()->steps = ~uint64_t{0};
  module_ = nullptr;
  run_ = nullptr;
  core_ = nullptr;
}

void Checker::Attach(Core *core, char *thread_memory, size_t thread_memory_bytes, char *dynamic,
                     uint64_t dynamic_bytes) {
  core_ = core;
  memory_.Bind(*module_, thread_memory, thread_memory_bytes, dynamic, dynamic_bytes);
  hot.shared_base = memory_.shared_base;
  hot.shared_bytes = memory_.shared_bytes;
  hot.owner = memory_.shared_owner.data();
  hot.shared = memory_.shared.data();
  hot.dynamic = &memory_.dynamic;
  hot.dynamic_base = memory_.dynamic.lo;
  hot.dynamic_bytes = memory_.dynamic.bytes;
}

void Checker::Publish() {
  hot.arena = memory_.arena;
  hot.slots = memory_.slots;
  hot.code = module_->base();
  hot.me = order_.me;
  hot.floor = order_.floor;
  hot.block_base = order_.block_base;
  hot.interval = order_.barrier_base - order_.block_base;
  hot.slow = rewrite_.waits || resumed_ || !order_.simple();
}

void Checker::BeginBlock(uint64_t block) {
  TellPending();
  core_->in_runtime = 1;
  if (order_.exhausted()) {
    memory_.ForgetShadows();
    order_.Restart();
  }
  order_.BeginBlock(block);
  core_->in_runtime = 0;
  resumed_ = false;
  // NaN and -1: what was never written shows in results, too.
  for (const Region *region : memory_.shared) memset(reinterpret_cast<void *>(region->lo), 0xff, region->bytes);
  memset(reinterpret_cast<void *>(memory_.dynamic.lo), 0xff, memory_.dynamic.bytes);
  Publish();
}

void Checker::BeginThread(unsigned thread) {
  if (__builtin_expect(rewrite_.waits, 0)) Resolve();
  order_.Resume(thread);
  hot.me = order_.me;
}

void Checker::Resume(unsigned thread) { BeginThread(thread); }

void Checker::ResumeBlock(uint64_t block) {
  order_.ResumeBlock(block);
  resumed_ = true;
  Publish();
}

void Checker::Barrier() {
  TellPending();
  order_.Barrier();
  Publish();
}

void Checker::WarpSync(unsigned warp, unsigned lanes) {
  if (rewrite_.waits) Resolve();
  order_.WarpSync(warp, lanes);
  Publish();
}

void Checker::Fence() {
  if (rewrite_.waits) Resolve();
  core_->in_runtime = 1;
  order_.Fence();
  core_->in_runtime = 0;
  Publish();
}

void Checker::HeapTaken(const void *block, uint64_t bytes) {
  memory_.AddHeap(reinterpret_cast<uintptr_t>(block), bytes);
}

bool Checker::HeapFreed(const void *block, bool *twice) {
  return memory_.FreeHeap(reinterpret_cast<uintptr_t>(block), twice);
}

void Checker::DynamicName(const char *name, unsigned element_bytes) {
  memory_.dynamic.name = name;
  memory_.dynamic.element_bytes = element_bytes;
}

// ---- accesses

uint32_t Checker::SiteOfLine(const char *file, int line) {
  size_t number = 0;
  while (number < file_count_ && files_[number] != file && strcmp(files_[number], file) != 0) ++number;
  if (number == kFiles) {
    number = 0;
  } else if (number == file_count_) {
    files_[file_count_++] = file;
  }
  constexpr uint32_t lines = (1u << kLineBits) - 1;
  return kSiteIsLine | static_cast<uint32_t>(number) << kLineBits | (static_cast<uint32_t>(line) & lines);
}

Checker::Place Checker::Locate(uintptr_t address, uint64_t bytes, pk_sim_access kind, uint32_t site) {
  Place place;
  const auto within = [&](Region *region, uint64_t offset) {
    if (offset >= region->bytes || region->bytes - offset < bytes || !CheckMemory::Open(*region, offset, bytes))
      OutOfBounds(region, address, bytes, kind, site);
    place.region = region;
    place.offset = offset;
  };
  const uintptr_t slot = (address - memory_.arena) >> kSlotShift;
  if (slot < kSlots) {
    within(memory_.slots[slot], address - memory_.slots[slot]->lo);
  } else if (address - memory_.shared_base < memory_.shared_bytes) {
    const uint16_t owner = memory_.shared_owner[address - memory_.shared_base];
    if (owner == kOwnVariable) {
      place.ignored = true;
      return place;
    }
    if (!owner) OutOfBounds(memory_.Nearest(address), address, bytes, kind, site);
    Region *region = memory_.shared[owner - 1u];
    within(region, address - region->lo);
  } else if (core_->InDynamicShared(address)) {
    within(&memory_.dynamic, address - memory_.dynamic.lo);
  } else if (core_->OnStack(address) || core_->InResidentMemory(address)) {
    place.ignored = true;
  } else if (uint64_t offset; Region *region = memory_.Find(address, &offset)) {
    within(region, offset);
  } else if (module_->Contains(address) && (!Writes(kind) || module_->OwnData(address))) {
    place.ignored = true;  // texts and constants, and the simulator's own variables
  } else if (state->HoldsHost(address, bytes)) {
    place.ignored = true;  // the host writes there as it likes
  } else {
    OutOfBounds(memory_.Nearest(address), address, bytes, kind, site);
  }
  return place;
}

void Checker::Access(uintptr_t address, uint64_t bytes, pk_sim_access kind, uint32_t site) {
  if (rewrite_.waits) Resolve();
  if (bytes == 0) return;
  if (kind >= PK_SIM_STRONG_READ) site |= kind >= PK_SIM_ATOMIC ? kStrong : kStrong | kVolatile;
  const Place place = Locate(address, bytes, kind, site);
  if (place.ignored) {
    if (fragments_.any()) fragments_.Touch(address, bytes, Writes(kind), site);
    return;
  }
  // Of plain accesses the compiler's own check knows better what is asked: it may have joined narrow ones to one.
  if (kind >= PK_SIM_ATOMIC && address % bytes) Misaligned(address, static_cast<unsigned>(bytes), "", site);
  if (mode_ == PK_SIM_CHECK_COUNT) Count(*place.region, bytes, kind);
  if (mode_ != PK_SIM_CHECK_ALL) return;
  Touch(place.region, place.offset, bytes, address, kind, site);
  // Only what a fence came before hands anything on.
  if (kind < PK_SIM_STRONG_READ || !order_.synchronises()) return;
  core_->in_runtime = 1;
  if (Reads(kind)) order_.Acquire(address);
  if (Writes(kind)) order_.Release(address);
  core_->in_runtime = 0;
}

void Checker::Count(const Region &region, uint64_t bytes, pk_sim_access kind) {
  const bool shared = region.kind == Region::kShared;
  if (Reads(kind)) (shared ? traffic.shared_loaded : traffic.global_loaded) += bytes;
  if (Writes(kind)) (shared ? traffic.shared_stored : traffic.global_stored) += bytes;
}

void Checker::Touch(Region *region, uint64_t offset, uint64_t bytes, uintptr_t address, pk_sim_access kind,
                    uint32_t site) {
  unsigned finest = 0;
  while (finest < region->shift && !((offset | bytes) & (uint64_t{1} << finest))) ++finest;
  if (!region->cells || finest < region->shift) {
    core_->in_runtime = 1;
    const bool has_memory = memory_.Refine(region, finest) && memory_.MakeCells(region);
    core_->in_runtime = 0;
    if (!has_memory) core_->Abort(PK_ERROR_OUT_OF_MEMORY, "", "the system refused memory to look for races in");
  }
  const uint64_t step = uint64_t{1} << region->shift;
  for (uint64_t at = 0; at < bytes; at += step)
    TouchCell(region, (offset + at) >> region->shift, address + at, static_cast<unsigned>(step), kind, site);
}

// Two strong accesses need no order. But volatile alone orders nothing within a warp, where old code relied on it.
bool Checker::Tolerated(const Region &region, uint32_t site, uint32_t earlier, uint32_t earlier_site) const {
  if (!(site & kStrong) || !(earlier_site & kStrong)) return false;
  if (region.kind != Region::kShared || !(site & earlier_site & kVolatile)) return true;
  return order_.Of(earlier).thread / 32 != order_.thread() / 32;
}

void Checker::TouchCell(Region *region, uint64_t at, uintptr_t address, unsigned bytes, pk_sim_access kind,
                        uint32_t site) {
  Cell &cell = region->cells[at];
  const bool shared = region->kind == Region::kShared;
  const uint32_t me = order_.me, base = shared ? order_.block_base : order_.floor;
  const uint64_t offset = at << region->shift;
  const auto clashes = [&](uint32_t id, uint32_t id_site) {
    return id >= base && id != me && order_.Unordered(id) && !Tolerated(*region, site, id, id_site);
  };
  const bool writes = Writes(kind);
  if (clashes(cell.writer, cell.writer_site)) {
    const bool plain_writes = kind == PK_SIM_WRITE && !(cell.writer_site & kStrong);
    if (!plain_writes || rewrite_.waits) Race(region, offset, bytes, writes, site, true, cell.writer, cell.writer_site);
    rewrite_.waits = true;
    rewrite_.address = address;
    rewrite_.bytes = bytes;
    memcpy(rewrite_.before, reinterpret_cast<const void *>(address), bytes);
    rewrite_.region = region;
    rewrite_.offset = offset;
    rewrite_.site = site;
    rewrite_.earlier = cell.writer;
    rewrite_.earlier_site = cell.writer_site;
    Publish();
  }
  if (Reads(kind) && kind != PK_SIM_ATOMIC_EXCHANGE && shared && cell.writer < base && !resumed_ && !unwritten_.region)
    unwritten_ = {region, offset, bytes, order_.thread(), site};
  if (writes) {
    if (clashes(cell.reader, cell.reader_site))
      Race(region, offset, bytes, true, site, false, cell.reader, cell.reader_site);
    if (cell.reader >= base && (cell.reader_site & kMany)) {
      const Reader &other = region->second[at];
      if (clashes(other.id, other.site)) Race(region, offset, bytes, true, site, false, other.id, other.site);
    }
    // An own plain write is not made good by an atomic after it.
    const bool keeps = cell.writer == me && (site & kStrong) && !(cell.writer_site & kStrong);
    cell = {me, keeps ? cell.writer_site : site, 0, 0};
    return;
  }
  if (cell.reader == me) return;
  const bool many = cell.reader >= base && (cell.reader_site & kMany);
  if (cell.reader < base || !order_.Unordered(cell.reader)) {
    cell.reader = me;
    cell.reader_site = site | (many ? kMany : 0);
    return;
  }
  if (many && region->second[at].id >= base && order_.Unordered(region->second[at].id)) return;
  if (!region->second) {
    core_->in_runtime = 1;
    const bool has_memory = memory_.MakeSecond(region);
    core_->in_runtime = 0;
    if (!has_memory) core_->Abort(PK_ERROR_OUT_OF_MEMORY, "", "the system refused memory to look for races in");
  }
  region->second[at] = {me, site};
  cell.reader_site |= kMany;
}

// The write has happened by now.
void Checker::Resolve() {
  rewrite_.waits = false;
  Publish();
  if (memcmp(rewrite_.before, reinterpret_cast<const void *>(rewrite_.address), rewrite_.bytes) == 0) return;
  Race(rewrite_.region, rewrite_.offset, rewrite_.bytes, true, rewrite_.site, true, rewrite_.earlier,
       rewrite_.earlier_site);
}

}  // namespace pygpukit::sim
