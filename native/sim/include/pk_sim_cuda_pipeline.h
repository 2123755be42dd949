// pk_sim_cuda_pipeline.h: cuda::pipeline, a queue of stages of copies, and the plain functions for one thread's copies.
// A copy is made at once by the threads that ask for it; what stages of several threads order are barriers.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_barrier.h"

namespace cuda {

enum class pipeline_role { producer, consumer };

// Of each stage: full when all producers have committed it, free when all consumers have released it.
template <thread_scope Scope, unsigned char Stages>
class pipeline_shared_state {
 public:
  pipeline_shared_state() = default;
  barrier<Scope> pk_sim_full[Stages], pk_sim_free[Stages];
  unsigned pk_sim_made;
};

template <thread_scope Scope>
class pipeline {
 public:
  pipeline() = default;
  pipeline(barrier<Scope> *full, barrier<Scope> *free, unsigned stages) : full_(full), free_(free), stages_(stages) {}
  pipeline(pipeline &&) = default;
  pipeline(const pipeline &) = delete;
  bool quit() { return true; }

  void producer_acquire(PK_SIM_HERE) {
    if (full_ && head_ >= stages_)
      free_[head_ % stages_].wait_parity(!(head_ / stages_ & 1u), pk_sim_file, pk_sim_line);
  }
  void producer_commit(PK_SIM_HERE) {
    if (full_) full_[head_ % stages_].arrive(1, pk_sim_file, pk_sim_line);
    ++head_;
  }
  void consumer_wait(PK_SIM_HERE) {
    if (full_) full_[tail_ % stages_].wait_parity(tail_ / stages_ & 1u, pk_sim_file, pk_sim_line);
  }
  void consumer_release(PK_SIM_HERE) {
    if (full_) free_[tail_ % stages_].arrive(1, pk_sim_file, pk_sim_line);
    ++tail_;
  }
  template <class Rep>
  bool consumer_wait_for(const Rep &, PK_SIM_HERE) {
    consumer_wait(pk_sim_file, pk_sim_line);
    return true;
  }

 private:
  barrier<Scope> *full_ = nullptr, *free_ = nullptr;
  unsigned stages_ = 1, head_ = 0, tail_ = 0;
};

// One thread's: its copies are done.
PK_SIM_INLINE pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }

template <class Group, thread_scope Scope, unsigned char Stages>
PK_SIM_INLINE pipeline<Scope> pk_sim_make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                                                   size_t producers, const char *file, int line) {
  if (group.thread_rank() == 0) {
    const size_t consumers = producers ? group.size() - producers : group.size();
    for (unsigned i = 0; i < Stages; ++i) {
      init(&state->pk_sim_full[i], producers ? producers : group.size());
      init(&state->pk_sim_free[i], consumers);
    }
  }
  group.sync(file, line);
  return pipeline<Scope>(state->pk_sim_full, state->pk_sim_free, Stages);
}
template <class Group, thread_scope Scope, unsigned char Stages>
PK_SIM_INLINE pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                                            PK_SIM_HERE) {
  return pk_sim_make_pipeline(group, state, 0, pk_sim_file, pk_sim_line);
}
template <class Group, thread_scope Scope, unsigned char Stages>
PK_SIM_INLINE pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                                            size_t producers, PK_SIM_HERE) {
  return pk_sim_make_pipeline(group, state, producers, pk_sim_file, pk_sim_line);
}
template <class Group, thread_scope Scope, unsigned char Stages>
PK_SIM_INLINE pipeline<Scope> make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
                                            pipeline_role role, PK_SIM_HERE) {
  unsigned *count = &state->pk_sim_made;
  if (group.thread_rank() == 0) *count = 0;
  group.sync(pk_sim_file, pk_sim_line);
  if (role == pipeline_role::producer) atomicAdd(count, 1u, pk_sim_file, pk_sim_line);
  group.sync(pk_sim_file, pk_sim_line);
  return pk_sim_make_pipeline(group, state, *count, pk_sim_file, pk_sim_line);
}

template <unsigned char Prior, thread_scope Scope>
PK_SIM_INLINE void pipeline_consumer_wait_prior(pipeline<Scope> &) {
  static_assert(Scope == thread_scope_thread, "pipeline_consumer_wait_prior() takes a pipeline of one thread");
}
template <class T, class Size, thread_scope Scope>
PK_SIM_INLINE void memcpy_async(T *to, const T *from, Size bytes, pipeline<Scope> &) {
  pk_sim_copy(to, from, bytes, 0, 1);
}
template <class Group, class T, class Size, thread_scope Scope>
PK_SIM_INLINE void memcpy_async(const Group &group, T *to, const T *from, Size bytes, pipeline<Scope> &) {
  pk_sim_copy(to, from, bytes, group.thread_rank(), group.size());
}
}  // namespace cuda

// ---- for C
PK_SIM_INLINE void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0) {
  pk_sim_copy(to, from, bytes - zeros, 0, 1);
  for (size_t i = bytes - zeros; i < bytes; ++i) ((char *)to)[i] = 0;
}
PK_SIM_INLINE void __pipeline_commit() {}
PK_SIM_INLINE void __pipeline_wait_prior(size_t) {}
