// check_order.h: which accesses of a launch are ordered before which.
//
// Every thread has an id, a number that grows through the process. It gets a new one where what it did before may
// become ordered before what others do after: at barriers, __syncwarp() and fences. An access is remembered by the id
// of its thread alone; the id tells block, thread and interval. Blocks run one after the other, so that the ids of a
// block lie together. What is not known to be unordered counts as ordered: a race may be missed, none is invented.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace pygpukit::sim {

// Ids that are ordered before what its owner does next.
class Known {
 public:
  struct Range {
    uint32_t lo, hi;
  };
  // Those of one thread among [lo, hi).
  struct Part {
    uint32_t lo, hi;
    uint64_t thread;  // block * 1024 + thread
  };
  void Add(uint32_t lo, uint32_t hi);
  void AddPart(const Part &part);
  void Join(const Known &other);
  bool Holds(uint32_t id, uint64_t thread) const;

 private:
  void Coarsen();
  std::vector<Range> ranges_;  // by lo, disjoint, not touching
  std::vector<Part> parts_;    // by lo and thread
};

class Order {
 public:
  struct Who {
    uint64_t block;
    unsigned thread;
  };

  void BeginLaunch(unsigned threads);
  void BeginBlock(uint64_t block);
  // The threads of a block change places with those of others; only at barriers of the cluster or grid.
  void ResumeBlock(uint64_t block);
  void Resume(unsigned thread) {
    thread_ = thread;
    me = ids_[thread];
  }
  void Barrier();      // of the block
  void GridBarrier();  // of all blocks of a set that share a core
  void WarpSync(unsigned warp, unsigned lanes);
  void Fence();
  void Acquire(uintptr_t address);
  void Release(uintptr_t address);
  bool synchronises() const { return any_fence_; }
  // Whether only barriers and blocks order anything now: then every thread has one id since the last barrier.
  bool simple() const { return !any_fence_ && !any_warp_synced_; }

  // Whether the access with this id is not ordered before what the running thread does now.
  bool Unordered(uint32_t id) const;
  Who Of(uint32_t id) const;
  unsigned thread() const { return thread_; }
  uint64_t block() const { return block_; }
  // Ids run out after some 4 billion: shadows must be cleared then, and ids begin anew.
  bool exhausted() const { return next_ > 0xf0000000u; }
  void Restart() {
    next_ = 1;
    Forget();
  }

  uint32_t me = 1;            // of the running thread
  uint32_t floor = 1;         // smaller ids are ordered before everything
  uint32_t block_base = 1;    // first id of the running block since it began or was resumed
  uint32_t barrier_base = 1;  // first one since its last barrier

 private:
  // Ids that were given out together. mask 0: to all threads of a block, any number of times, and of as many blocks.
  struct Segment {
    uint32_t first, mask;
    unsigned warp;
    uint32_t period;  // ids of each block; 0 while there is one block
    uint64_t block, blocks;
  };
  void NewIds();
  void Learn(unsigned thread);  // what its atomics brought it
  void Forget();
  uint64_t Tag(unsigned thread) const { return block_ * 1024 + thread; }

  unsigned threads_ = 0, thread_ = 0;
  uint64_t block_ = 0;
  uint32_t next_ = 1;
  bool plain_ = false;  // the running block has only ids of all its threads so far
  std::vector<Segment> segments_;
  uint32_t ids_[1024] = {};
  // Latest id of each lane of the warp that is ordered before the thread by __syncwarp(), since the last barrier.
  uint32_t seen_[1024][32] = {};
  bool warp_synced_[32] = {}, any_warp_synced_ = false;

  bool any_fence_ = false, fenced_since_barrier_ = false;
  uint32_t published_ = 1;          // what the block did before may have been published by anybody's fence
  uint32_t fence_id_[1024] = {};    // own ids below were before the thread's latest fence; 0 = no fence in this block
  uint32_t fence_base_[1024] = {};  // barrier_base at that fence
  uint32_t fence_seen_[1024][32] = {};  // seen_ at that fence
  bool any_known_ = false;
  std::unique_ptr<Known> known_[1024];  // of threads, beyond what the block knows
  std::unique_ptr<Known> met_[1024];    // what atomics brought a thread, known from its next fence or barrier on
  Known block_known_;
  std::unordered_map<uintptr_t, Known> released_;
};

}  // namespace pygpukit::sim
