// warp.cpp: warp collectives. The last lane to arrive computes the results of all of them.
#include "sim/check.h"
#include "sim/core.h"
#include "sim/module.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

const char *const kNames[PK_SIM_WARP_OPS] = {
    "__syncwarp",        "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",
    "__ballot_sync",     "__any_sync",        "__all_sync",        "__activemask",      "__match_any_sync",
    "__match_all_sync",  "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync",
    "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync", "matrix function"};

constexpr unsigned Bit(unsigned lane) { return 1u << lane; }

template <class Visit>
void ForEachLane(unsigned lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1) visit(static_cast<unsigned>(__builtin_ctz(lanes)));
}

// The lane that a shuffle reads from.
unsigned Source(unsigned lane, const pk_sim_warp_call &call) {
  const int width = call.width, segment = static_cast<int>(lane) & ~(width - 1), self = static_cast<int>(lane);
  int source = self;
  if (call.op == PK_SIM_SHFL) source = segment + (call.lane & (width - 1));
  if (call.op == PK_SIM_SHFL_UP && self - call.lane >= segment) source = self - call.lane;
  if (call.op == PK_SIM_SHFL_DOWN && call.lane < segment + width - self) source = self + call.lane;
  // As on the device: a lane of a lower segment may be read, one of a higher segment may not.
  if (call.op == PK_SIM_SHFL_XOR && (self ^ call.lane) < segment + width) source = self ^ call.lane;
  return static_cast<unsigned>(source) & 31u;
}

uint64_t Combine(pk_sim_warp_op op, uint64_t a, uint64_t b) {
  const uint32_t x = static_cast<uint32_t>(a), y = static_cast<uint32_t>(b);
  const int32_t i = static_cast<int32_t>(x), j = static_cast<int32_t>(y);
  switch (op) {
    case PK_SIM_REDUCE_ADD:
      return x + y;
    case PK_SIM_REDUCE_MIN_SIGNED:
      return i < j ? x : y;
    case PK_SIM_REDUCE_MAX_SIGNED:
      return i < j ? y : x;
    case PK_SIM_REDUCE_MIN:
      return x < y ? x : y;
    case PK_SIM_REDUCE_MAX:
      return x < y ? y : x;
    case PK_SIM_REDUCE_AND:
      return x & y;
    case PK_SIM_REDUCE_OR:
      return x | y;
    default:
      return x ^ y;
  }
}

const pk_sim_warp_work *WorkOf(const pk_sim_warp_call &call) {
  return reinterpret_cast<const pk_sim_warp_frame *>(call.value)->work;
}

const char *NameOf(const pk_sim_warp_call &call) {
  return call.op == PK_SIM_MATRIX ? WorkOf(call)->name : kNames[call.op];
}

void ComputeMatrix(const Lane *lanes) {
  void *frames[32];
  for (unsigned lane = 0; lane < 32; ++lane) frames[lane] = reinterpret_cast<void *>(lanes[lane].call.value);
  WorkOf(lanes[0].call)->compute(frames);
}

void Compute(Lane *lanes, unsigned set) {
  const unsigned first = static_cast<unsigned>(__builtin_ctz(set));
  const pk_sim_warp_op op = lanes[first].call.op;
  const auto same = [&](unsigned lane) {
    unsigned result = 0;
    ForEachLane(set, [&](unsigned other) {
      if (lanes[other].call.value == lanes[lane].call.value) result |= Bit(other);
    });
    return result;
  };
  if (op == PK_SIM_MATRIX) {
    ComputeMatrix(lanes);
  } else if (op >= PK_SIM_SHFL && op <= PK_SIM_SHFL_XOR) {
    ForEachLane(set, [&](unsigned lane) {
      // What an absent lane would give is undefined: the own value.
      const unsigned source = Source(lane, lanes[lane].call);
      lanes[lane].result = lanes[set & Bit(source) ? source : lane].call.value;
    });
  } else if (op == PK_SIM_MATCH_ANY) {
    ForEachLane(set, [&](unsigned lane) { lanes[lane].result = same(lane); });
  } else {
    uint64_t all = 0;
    if (op >= PK_SIM_BALLOT && op <= PK_SIM_ALL) {
      unsigned votes = 0;
      ForEachLane(set, [&](unsigned lane) { votes |= lanes[lane].call.value ? Bit(lane) : 0; });
      all = op == PK_SIM_BALLOT ? votes : op == PK_SIM_ANY ? votes != 0 : votes == set;
    } else if (op == PK_SIM_MATCH_ALL) {
      all = same(first) == set ? set : 0;
    } else if (op == PK_SIM_ACTIVEMASK) {
      all = set;
    } else if (op != PK_SIM_SYNCWARP) {
      all = lanes[first].call.value;
      ForEachLane(set & (set - 1), [&](unsigned lane) { all = Combine(op, all, lanes[lane].call.value); });
    }
    ForEachLane(set, [&](unsigned lane) { lanes[lane].result = all; });
  }
}

}  // namespace

// Lanes of the warp whose thread has not been started yet.
unsigned Core::Unstarted(unsigned warp, unsigned started) const {
  const unsigned begin = warp * 32, end = begin + 32 < threads_ ? begin + 32 : threads_;
  if (started >= end) return 0;
  const unsigned low = started > begin ? started - begin : 0, count = end - begin;
  return (count == 32 ? ~0u : Bit(count) - 1) & ~(Bit(low) - 1);
}

// Whether all lanes that this lane's call names, as far as they exist, are in the same call.
bool Core::Complete(unsigned warp_index, unsigned lane, unsigned started, unsigned *lanes) const {
  const Warp &warp = warps_[warp_index];
  const pk_sim_warp_call &call = warp.lanes[lane].call;
  const unsigned need = call.mask & (warp.held | Unstarted(warp_index, started));
  if (call.op == PK_SIM_ACTIVEMASK || (warp.waiting & need) != need) return false;
  bool same = true;
  ForEachLane(need, [&](unsigned other) {
    const pk_sim_warp_call &theirs = warp.lanes[other].call;
    same &= theirs.op == call.op && theirs.mask == call.mask &&
            (call.op != PK_SIM_MATRIX || WorkOf(theirs) == WorkOf(call));
  });
  *lanes = need;
  return same;
}

// Lanes go to the front of the queue, in order: they are likely to meet again soon.
void Core::Finish(unsigned warp_index, unsigned lanes, const Fiber *self) {
  Warp &warp = warps_[warp_index];
  warp.waiting &= ~lanes;
  if (~lanes && warp.lanes[__builtin_ctz(lanes)].call.op == PK_SIM_MATRIX) PartOfWarp(warp.lanes, lanes, warp_index);
  if (run_->checker) CheckSources(warp.lanes, lanes, warp_index);
  Compute(warp.lanes, lanes);
  Fiber *head = nullptr, *tail = nullptr;
  ForEachLane(lanes, [&](unsigned lane) {
    Fiber *fiber = warp.lanes[lane].fiber;
    if (fiber == self) return;
    (tail ? tail->next : head) = fiber;
    tail = fiber;
  });
  if (!head) return;
  tail->next = queue_head_;
  queue_head_ = head;
  if (!queue_tail_) queue_tail_ = tail;
}

// What a lane that is not there would give is undefined. Also tells the checker of a __syncwarp().
void Core::CheckSources(const Lane *lanes, unsigned set, unsigned warp) {
  const pk_sim_warp_op op = lanes[__builtin_ctz(set)].call.op;
  if (op == PK_SIM_SYNCWARP) {
    in_runtime = 1;
    run_->checker->WarpSync(warp, set);
    in_runtime = 0;
  }
  if (op < PK_SIM_SHFL || op > PK_SIM_SHFL_XOR) return;
  ForEachLane(set, [&](unsigned lane) {
    const pk_sim_warp_call &call = lanes[lane].call;
    const unsigned source = Source(lane, call);
    if (set & Bit(source)) return;
    run_->checker->TellPending();
    in_runtime = 1;
    const Fiber &fiber = *lanes[lane].fiber;
    Finding finding;
    Fill(&finding, "warp mask",
         Format("lane %u reads lane %u by %s, which %s: the value is undefined, at %s:%d", lane, source, kNames[op],
                call.mask & Bit(source) ? "has exited or does not exist" : "its mask does not name", fiber.file,
                fiber.line),
         fiber.line);
    const unsigned thread = warp * 32 + lane;
    finding.thread = {thread % run_->block.x, thread / run_->block.x % run_->block.y,
                      thread / run_->block.x / run_->block.y};
    Report(PK_ERROR_LAUNCH_FAILED, std::move(finding));
  });
}

// Never returns: what a part of a warp would get from a matrix function is undefined.
void Core::PartOfWarp(const Lane *lanes, unsigned set, unsigned warp) {
  if (run_->checker) run_->checker->TellPending();
  in_runtime = 1;
  const unsigned lane = static_cast<unsigned>(__builtin_ctz(set)), thread = warp * 32 + lane;
  const Fiber &fiber = *lanes[lane].fiber;
  Finding finding;
  Fill(&finding, "warp matrix",
       Format("%s needs all 32 lanes of a warp, and only %d are there (lanes 0x%08x) at %s:%d: the others have exited, "
              "or the block is no multiple of 32 threads",
              NameOf(lanes[lane].call), __builtin_popcount(set), set, fiber.file, fiber.line),
       fiber.line);
  finding.thread = {thread % run_->block.x, thread / run_->block.x % run_->block.y,
                    thread / run_->block.x / run_->block.y};
  Report(PK_ERROR_LAUNCH_FAILED, std::move(finding));
}

bool Core::FinishComplete(unsigned warp, unsigned started) {
  bool any = false;
  unsigned lanes;
  for (unsigned left = warps_[warp].waiting; left; left &= left - 1) {
    const unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
    if (!(warps_[warp].waiting & Bit(lane)) || !Complete(warp, lane, started, &lanes)) continue;
    Finish(warp, lanes, nullptr);
    any = true;
  }
  return any;
}

// __activemask(): nothing else can run, so the lanes that stand at one call are as converged as they can be.
bool Core::FinishConverged() {
  for (unsigned index = 0; index * 32 < threads_; ++index) {
    const Warp &warp = warps_[index];
    unsigned set = 0;
    const void *site = nullptr;
    ForEachLane(warp.waiting, [&](unsigned lane) {
      const pk_sim_warp_call &call = warp.lanes[lane].call;
      if (call.op != PK_SIM_ACTIVEMASK || (set && call.site != site)) return;
      site = call.site;
      set |= Bit(lane);
    });
    if (!set) continue;
    Finish(index, set, nullptr);
    return true;
  }
  return false;
}

std::string Core::DescribeLane(unsigned thread) const {
  const pk_sim_warp_call &call = warps_[thread / 32].lanes[thread % 32].call;
  return Format("%s(mask 0x%08x)", NameOf(call), call.mask);
}

uint64_t Core::WarpCall(const pk_sim_self &self, const pk_sim_warp_call &call) {
  Fiber *fiber = current_;
  Note(fiber, self);
  fiber->waits_at_barrier = false;
  const unsigned index = self.thread / 32, lane = self.thread % 32;
  Warp &warp = warps_[index];
  Lane &slot = warp.lanes[lane];
  slot.call = call;
  slot.fiber = fiber;
  if (!(call.mask & Bit(lane)) && call.op != PK_SIM_ACTIVEMASK) {
    Abort(PK_ERROR_LAUNCH_FAILED, "warp mask",
          Format("lane %u calls %s with mask 0x%08x, which does not name it, at %s:%d", lane, kNames[call.op],
                 call.mask, self.file, self.line),
          self.line);
  }
  warp.waiting |= Bit(lane);
  unsigned lanes;
  if (Complete(index, lane, self.started, &lanes)) {
    Finish(index, lanes, fiber);
  } else {
    SwitchTo(fiber, NextRunnable(self.started));
  }
  if (run_->checker) run_->checker->Resume(self.thread);
  return slot.result;
}

}  // namespace pygpukit::sim
