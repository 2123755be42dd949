// check_report.cpp: what the checker tells of what it found.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/check.h"
#include "sim/core.h"
#include "sim/module.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

pk_sim_dim Unravel(uint64_t index, pk_sim_dim extent) {
  return {static_cast<unsigned>(index % extent.x), static_cast<unsigned>(index / extent.x % extent.y),
          static_cast<unsigned>(index / extent.x / extent.y)};
}

std::string Text(pk_sim_dim at) { return Format("(%u,%u,%u)", at.x, at.y, at.z); }

const char *Verb(pk_sim_access kind) {
  return kind >= PK_SIM_ATOMIC ? "updates" : kind == PK_SIM_WRITE || kind == PK_SIM_STRONG_WRITE ? "writes" : "reads";
}

// The line of the unit's text that its #line directives call by that place; "" for none.
std::string TextAt(const char *text, std::string file, const std::string &place) {
  unsigned line = 1;
  for (const char *end; *text; text = *end ? end + 1 : end) {
    end = text + strcspn(text, "\n");
    const std::string here(text, end);
    unsigned next;
    int name = 0;
    if (sscanf(here.c_str(), " # line %u \"%n", &next, &name) == 1) {
      line = next;
      if (!name) continue;
      file.clear();
      for (size_t at = static_cast<size_t>(name); at < here.size() && here[at] != '"'; ++at)
        file += here[at] == '\\' && at + 1 < here.size() ? here[++at] : here[at];
    } else if (Format("%s:%u", file.c_str(), line++) == place) {
      return here;
    }
  }
  return "";
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

}  // namespace

pk_sim_dim Checker::ThreadIndex(unsigned thread) const { return Unravel(thread, run_->block); }
pk_sim_dim Checker::BlockIndex(uint64_t block) const { return Unravel(block, run_->grid); }

std::string Checker::Who(uint64_t block, unsigned thread) const {
  return "thread " + Text(ThreadIndex(thread)) +
         (block == order_.block() ? "" : " of block " + Text(BlockIndex(block)));
}

// The address is that after a call, which may belong to the next line already.
std::string Checker::At(uint32_t site) const {
  const uint32_t place = site & (kSiteIsLine - 1);
  if (!(site & kSiteIsLine)) return module_->SourceLine(module_->base() + place - 1);
  const uint32_t line = place & ((1u << kLineBits) - 1);
  return line ? Format("%s:%u", files_[place >> kLineBits], line) : "";
}

Finding Checker::MakeFinding(const char *kind, unsigned thread, uint32_t site) const {
  Finding finding;
  finding.kind = kind;
  finding.block = BlockIndex(order_.block());
  finding.thread = ThreadIndex(thread);
  finding.place = At(site);
  const size_t start = finding.place.rfind(':');
  finding.line = start == std::string::npos ? 0 : atoi(finding.place.c_str() + start + 1);
  return finding;
}

void Checker::Name(const Region &region, uintptr_t address, uint64_t bytes, Finding *finding) const {
  if (region.kind == Region::kHeap) return;  // has no name, and an element of no known size
  const bool elsewhere = (address - memory_.arena) >> kSlotShift >= kSlots;
  if (region.kind == Region::kArray && region.slots && elsewhere) address += region.lo - region.address;
  uintptr_t start = region.kind == Region::kArray && !region.slots ? region.address : region.lo;
  unsigned element = region.element_bytes;
  finding->array = region.name;
  const View *best = nullptr;
  for (const View &view : region.views)
    if (!best || (view.start <= address && (view.start > best->start || best->start > address))) best = &view;
  if (best) {
    finding->array = best->name;
    start = best->start;
    if (best->element_bytes) element = best->element_bytes;
  }
  if (!element) element = bytes <= 8 ? static_cast<unsigned>(bytes) : 1;
  finding->has_index = true;
  finding->index = FloorDivide(static_cast<int64_t>(address - start), element);
}

std::string Checker::Element(const Finding &finding) const {
  if (!finding.has_index) return "memory from malloc()";
  return Format("%s[%lld]", finding.array.empty() ? "an array" : finding.array.c_str(),
                static_cast<long long>(finding.index));
}

void Checker::Raise(pk_status status, Finding finding) {
  core_->in_runtime = 1;
  if (finding.line) finding.message += ", at " + finding.place;
  core_->Report(status, std::move(finding));
}

void Checker::OutOfBounds(Region *region, uintptr_t address, uint64_t bytes, pk_sim_access kind, uint32_t site) {
  TellPending();
  Finding finding = MakeFinding("out of bounds", order_.thread(), site);
  const unsigned long long count = bytes;
  if (region == &memory_.nothing) region = nullptr;
  if (!region) {
    if (address < 4096) {
      finding.array = memory_.null_name;
      finding.has_index = !finding.array.empty();
      finding.index = static_cast<int64_t>(address / bytes);
      finding.message = Format("%s %llu bytes at a null pointer%s%s", Verb(kind), count, finding.has_index ? ": " : "",
                               finding.has_index ? (finding.array + " is None").c_str() : "");
    } else {
      finding.message = Format("%s %llu bytes at 0x%llx, which belongs to no array", Verb(kind), count,
                               static_cast<unsigned long long>(address));
    }
    Raise(PK_ERROR_ILLEGAL_ADDRESS, std::move(finding));
  }
  Name(*region, address, bytes, &finding);
  const unsigned long long whole = region->whole_bytes;
  if (region->freed) {
    finding.kind = "use after free";
    finding.message = Format("%s %s after the memory was freed", Verb(kind), Element(finding).c_str());
  } else if (region->kind == Region::kShared && region == &memory_.dynamic) {
    finding.message = Format("%s %s, outside the %llu bytes of dynamic shared memory of this launch", Verb(kind),
                             Element(finding).c_str(), whole);
  } else if (region->kind == Region::kArray && region->span < region->whole_bytes &&
             address - (region->slots ? region->lo : region->address) < region->bytes) {
    finding.message =
        Format("%s %s, outside of the %llu bytes that the kernel was given of an array of %llu", Verb(kind),
               Element(finding).c_str(), static_cast<unsigned long long>(region->span), whole);
  } else {
    const bool before = finding.has_index && finding.index < 0;
    finding.message = Format("%s %s, %s of its %llu bytes", Verb(kind), Element(finding).c_str(),
                             before ? "before the start" : "past the end", whole);
  }
  Raise(PK_ERROR_ILLEGAL_ADDRESS, std::move(finding));
}

void Checker::Race(Region *region, uint64_t offset, unsigned bytes, bool write, uint32_t site, bool earlier_write,
                   uint32_t earlier, uint32_t earlier_site) {
  core_->in_runtime = 1;
  const Order::Who other = order_.Of(earlier), self = {order_.block(), order_.thread()};
  // A thread that ran first has read what another writes only now: the reader is the one that came too early.
  const bool swap = region->kind == Region::kShared && write && !earlier_write &&
                    region->cells[offset >> region->shift].writer < order_.block_base;
  const Order::Who &first = swap ? other : self, &second = swap ? self : other;
  Finding finding = MakeFinding("race", first.thread, swap ? earlier_site : site);
  finding.block = BlockIndex(first.block);
  const uintptr_t start = region->kind == Region::kArray && !region->slots ? region->address : region->lo;
  Name(*region, start + offset, bytes, &finding);
  const bool first_writes = swap ? earlier_write : write, second_writes = swap ? write : earlier_write;
  const std::string where = At(swap ? site : earlier_site);
  finding.message =
      Format("%s %s, which thread %s of block %s %s%s: nothing orders the two", first_writes ? "writes" : "reads",
             Element(finding).c_str(), Text(ThreadIndex(second.thread)).c_str(), Text(BlockIndex(second.block)).c_str(),
             second_writes ? "writes" : "reads", where.empty() ? "" : (" at " + where).c_str());
  Raise(PK_ERROR_LAUNCH_FAILED, std::move(finding));
}

bool Checker::TakeUnwritten(Finding *finding) {
  if (!unwritten_.region) return false;
  const Unwritten read = unwritten_;
  unwritten_ = {};
  Finding unwritten = MakeFinding("uninitialised", read.thread, read.site);
  unwritten.kernel = std::move(finding->kernel);
  *finding = std::move(unwritten);
  Name(*read.region, read.region->lo + read.offset, read.bytes, finding);
  finding->message =
      Format("reads %s of shared memory, which no thread of the block has written", Element(*finding).c_str());
  return true;
}

void Checker::TellPending() {
  if (rewrite_.waits) Resolve();
  if (!unwritten_.region) return;
  core_->in_runtime = 1;
  Finding finding;
  TakeUnwritten(&finding);
  Raise(PK_ERROR_LAUNCH_FAILED, std::move(finding));
}

void Checker::Index(const char *type, int64_t index, uint32_t site, int column) {
  TellPending();
  core_->in_runtime = 1;
  Finding finding = MakeFinding("out of bounds", order_.thread(), site);
  finding.array = ArrayAt(site, column);
  finding.has_index = true;
  finding.index = index;
  finding.message = Format("index %lld is outside %s, of type %s", static_cast<long long>(index),
                           finding.array.empty() ? "an array" : finding.array.c_str(), type);
  Raise(PK_ERROR_ILLEGAL_ADDRESS, std::move(finding));
}

void Checker::Misaligned(uintptr_t address, unsigned alignment, const char *type, uint32_t site) {
  TellPending();
  core_->in_runtime = 1;
  Finding finding = MakeFinding("misaligned", order_.thread(), site);
  uint64_t offset;
  const uintptr_t slot = (address - memory_.arena) >> kSlotShift;
  Region *region = slot < kSlots ? memory_.slots[slot] : memory_.Find(address, &offset);
  if (address - memory_.shared_base < memory_.shared_bytes) {
    const uint16_t owner = memory_.shared_owner[address - memory_.shared_base];
    if (owner) region = memory_.shared[owner - 1u];
  } else if (core_->InDynamicShared(address)) {
    region = &memory_.dynamic;
  }
  if (region && region != &memory_.nothing) Name(*region, address, alignment, &finding);
  finding.message =
      Format("%s is not aligned to %u bytes%s%s", finding.has_index ? Element(finding).c_str() : "an address",
             alignment, *type ? ", as it must be for " : "", type);
  Raise(PK_ERROR_MISALIGNED_ADDRESS, std::move(finding));
}

void Checker::Fragment(uintptr_t elements, unsigned bytes, unsigned element_bytes, const char *file, int line) {
  if (file) {
    const Fragments::Part part = fragments_.Use(elements);
    if (part.is_written) PartOfFragment(part, file, line);
    return;
  }
  core_->in_runtime = 1;
  fragments_.Set(elements, bytes, element_bytes);
  core_->in_runtime = 0;
}

void Checker::PartOfFragment(const Fragments::Part &part, const char *file, int line) {
  TellPending();
  core_->in_runtime = 1;
  Finding finding = MakeFinding("warp matrix", order_.thread(), part.site);
  finding.message = Format(
      "writes x[%u] of a fragment of %u elements and leaves others untouched, and the fragment is used at %s:%d: which "
      "element of the matrix a lane's x[i] is, is not defined. Do the same to every element, or work in shared memory",
      part.element, part.elements, file, line);
  Raise(PK_ERROR_LAUNCH_FAILED, std::move(finding));
}

void Checker::DividedByZero(uint32_t site) {
  TellPending();
  core_->in_runtime = 1;
  Finding finding = MakeFinding("integer division by zero", order_.thread(), site);
  finding.message = "an integer is divided by zero";
  Raise(PK_ERROR_LAUNCH_FAILED, std::move(finding));
}

void Checker::OutOfSteps(uint32_t site) {
  TellPending();
  core_->in_runtime = 1;
  // The call stands before its block, and may have no line of its own.
  Finding finding = MakeFinding("step limit", order_.thread(), site);
  for (uint32_t ahead = 1; !finding.line && ahead <= 64; ++ahead)
    finding = MakeFinding("step limit", order_.thread(), site + ahead);
  finding.message = Format("the launch ran more than %llu steps (PYGPUKIT_SIM_STEP_LIMIT sets the limit)",
                           static_cast<unsigned long long>(module_->check()->step_limit));
  Raise(PK_ERROR_LAUNCH_TIMEOUT, std::move(finding));
}

// The name before the brackets that the column is in or before.
std::string Checker::ArrayAt(uint32_t site, int column) const {
  const std::string text = TextAt(module_->check()->source, files_[0], At(site));
  const auto word = [](char c) { return c == '_' || isalnum(static_cast<unsigned char>(c)); };
  std::string best;
  for (size_t at = 0; at < text.size();) {
    if (!word(text[at])) {
      ++at;
      continue;
    }
    const size_t first = at;
    while (at < text.size() && word(text[at])) ++at;
    size_t end = at;
    while (end < text.size() && text[end] == ' ') ++end;
    if (end == text.size() || text[end] != '[') continue;
    while (end < text.size() && text[end] == '[') {
      int depth = 0;
      do {
        depth += (text[end] == '[') - (text[end] == ']');
        ++end;
      } while (depth > 0 && end < text.size());
    }
    const auto before = static_cast<size_t>(column > 0 ? column - 1 : 0);
    if (first <= before && before <= end) best = text.substr(first, at - first);
  }
  return best;
}

}  // namespace pygpukit::sim
