// pk_sim_block.h: the built-in variables, barriers, printf, assert and clocks.
//
// The built-in variables are static thread-locals of the image whose address never escapes: a compiler can therefore
// keep them in registers and vectorise across threads. Whoever may lose the processor saves and restores them itself.
#pragma once
#pragma GCC system_header

#ifndef PK_SIM_CHECK
#define PK_SIM_STATE static thread_local
#define PK_SIM_OWN(name) name
static thread_local uint3 threadIdx;
static thread_local uint3 blockIdx;
static thread_local dim3 blockDim;
static thread_local dim3 gridDim;
#else
// A kernel sees them as constants, which they are as long as one thread runs it: compilers put no checks before reading
// constants. One checked launch runs at a time: the simulator's own variables need not be thread-local, and lie
// together for those who swap blocks.
#define PK_SIM_OWN(name) pk_sim_own_##name
#define PK_SIM_STATE static __attribute__((__section__("pk_sim_own")))
#define PK_SIM_BUILT_IN(name)                                                                     \
  __attribute__((__visibility__("hidden"))) extern const uint3 name __asm__("pk_sim_own_" #name); \
  __attribute__((__visibility__("hidden"), __section__("pk_sim_own")))                            \
  uint3 pk_sim_own_##name __asm__("pk_sim_own_" #name);
PK_SIM_BUILT_IN(threadIdx)
PK_SIM_BUILT_IN(blockIdx)
PK_SIM_BUILT_IN(blockDim)
PK_SIM_BUILT_IN(gridDim)
#undef PK_SIM_BUILT_IN
static pk_sim_check_api pk_sim_checker;
PK_SIM_NOINLINE void pk_sim_check_access(const void *address, size_t bytes, pk_sim_access kind, const char *file,
                                         int line) {
  pk_sim_checker.access(address, bytes, kind, nullptr, file, line);
}
PK_SIM_NOINLINE void pk_sim_check_fence() { pk_sim_checker.fence(); }
#endif
static constexpr int warpSize = 32;

static const pk_sim_api *pk_sim_device;
PK_SIM_STATE void *pk_sim_core;
// Linear indices of the running block, and of the running thread in it. Volatile: read after a fault.
PK_SIM_STATE volatile pk_sim_u64 pk_sim_block;
PK_SIM_STATE volatile unsigned pk_sim_thread;
PK_SIM_STATE unsigned pk_sim_started;              // threads of the block started so far; see below
PK_SIM_STATE unsigned pk_sim_row_y, pk_sim_row_z;  // threadIdx.y and .z of the row whose threads are being started
PK_SIM_STATE bool pk_sim_suspended;                // some thread of this block has been in a blocking call
PK_SIM_STATE unsigned pk_sim_spins;
PK_SIM_STATE unsigned pk_sim_blocks_begun;  // so far: tells what a block has kept from what others left
PK_SIM_STATE void *pk_sim_dynamic_base;
PK_SIM_STATE unsigned pk_sim_dynamic_bytes;
PK_SIM_STATE bool pk_sim_cooperative;  // launched so that grid.sync() works
PK_SIM_STATE dim3 pk_sim_cluster;      // blocks of a cluster

#define PK_SIM_HERE const char *pk_sim_file = __builtin_FILE(), int pk_sim_line = __builtin_LINE()

// ---- dynamic shared memory: simulator.py turns `extern __shared__ T name[];` into one of these
template <class T>
struct pk_sim_decayed;
template <class T>
struct pk_sim_decayed<T[]> {
  typedef T *type;
};
template <class T>
using pk_sim_pointer = typename pk_sim_decayed<T>::type;
template <class T>
#ifndef PK_SIM_CHECK
PK_SIM_INLINE pk_sim_pointer<T> pk_sim_dynamic(const char *) {
#else
PK_SIM_NOINLINE pk_sim_pointer<T> pk_sim_dynamic(const char *name) {
  pk_sim_checker.dynamic_name(name, sizeof(*(pk_sim_pointer<T>)nullptr));
#endif
  return (pk_sim_pointer<T>)pk_sim_dynamic_base;
}

// Threads are started in their order, and not counted until one of them blocks or the row is over.
PK_SIM_INLINE void pk_sim_count_started() {
  if (pk_sim_started <= pk_sim_thread) pk_sim_started = pk_sim_thread + 1;
}

// What %smid tells in PTX.
PK_SIM_INLINE unsigned pk_sim_smid() { return pk_sim_device->multiprocessor(pk_sim_core); }

// ---- barriers
PK_SIM_COLLECTIVE int pk_sim_barrier(pk_sim_barrier_kind kind, int predicate, const char *file, int line) {
  const unsigned x = PK_SIM_OWN(threadIdx).x, y = PK_SIM_OWN(threadIdx).y, z = PK_SIM_OWN(threadIdx).z;
  pk_sim_count_started();
  const pk_sim_self self = {pk_sim_core, pk_sim_thread, pk_sim_started, file, line};
  pk_sim_suspended = true;
  const int result = pk_sim_device->barrier(&self, kind, predicate);
  PK_SIM_OWN(threadIdx).x = x, PK_SIM_OWN(threadIdx).y = y, PK_SIM_OWN(threadIdx).z = z;
  pk_sim_thread = self.thread;
  return result;
}
PK_SIM_INLINE void __syncthreads(PK_SIM_HERE) { pk_sim_barrier(PK_SIM_BARRIER, 0, pk_sim_file, pk_sim_line); }
PK_SIM_INLINE int __syncthreads_count(int predicate, PK_SIM_HERE) {
  return pk_sim_barrier(PK_SIM_BARRIER_COUNT, predicate, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE int __syncthreads_and(int predicate, PK_SIM_HERE) {
  return pk_sim_barrier(PK_SIM_BARRIER_AND, predicate, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE int __syncthreads_or(int predicate, PK_SIM_HERE) {
  return pk_sim_barrier(PK_SIM_BARRIER_OR, predicate, pk_sim_file, pk_sim_line);
}

// ---- clusters: blocks that share a core and can reach each other's shared memory
PK_SIM_INLINE dim3 __clusterDim() { return pk_sim_cluster; }
PK_SIM_INLINE unsigned __clusterSizeInBlocks() { return pk_sim_cluster.x * pk_sim_cluster.y * pk_sim_cluster.z; }
PK_SIM_INLINE dim3 __clusterGridDimInClusters() {
  return {gridDim.x / pk_sim_cluster.x, gridDim.y / pk_sim_cluster.y, gridDim.z / pk_sim_cluster.z};
}
PK_SIM_INLINE dim3 __clusterIdx() {
  return {blockIdx.x / pk_sim_cluster.x, blockIdx.y / pk_sim_cluster.y, blockIdx.z / pk_sim_cluster.z};
}
PK_SIM_INLINE dim3 __clusterRelativeBlockIdx() {
  return {blockIdx.x % pk_sim_cluster.x, blockIdx.y % pk_sim_cluster.y, blockIdx.z % pk_sim_cluster.z};
}
PK_SIM_INLINE unsigned __clusterRelativeBlockRank() {
  const dim3 at = __clusterRelativeBlockIdx();
  return at.x + pk_sim_cluster.x * (at.y + pk_sim_cluster.y * at.z);
}
PK_SIM_INLINE void __cluster_barrier_arrive() {}
PK_SIM_INLINE void __cluster_barrier_arrive_relaxed() {}
PK_SIM_INLINE void __cluster_barrier_wait(PK_SIM_HERE) {
  pk_sim_barrier(PK_SIM_BARRIER_CLUSTER, 0, pk_sim_file, pk_sim_line);
}
[[noreturn]] PK_SIM_NOINLINE void pk_sim_fail(pk_sim_failure, const char *, const char *, const char *, int);
PK_SIM_NOINLINE void *pk_sim_map_shared(const void *address, unsigned rank, const char *file, int line) {
  if (__clusterSizeInBlocks() == 1 && rank == 0) return (void *)address;
  void *const there = pk_sim_device->map_shared(pk_sim_core, address, rank);
  if (!there)
    pk_sim_fail(PK_SIM_FAIL_TRAP, "map_shared_rank() of what is no shared memory, or of no block of the cluster,", "",
                file, line);
  return there;
}
PK_SIM_INLINE void *__cluster_map_shared_rank(const void *address, unsigned rank, PK_SIM_HERE) {
  return pk_sim_map_shared(address, rank, pk_sim_file, pk_sim_line);
}
PK_SIM_NOINLINE unsigned __cluster_query_shared_rank(const void *address) {
  return __clusterSizeInBlocks() == 1 ? 0 : pk_sim_device->shared_rank(pk_sim_core, address);
}

// Ends the thread, in whatever function it is.
[[noreturn]] PK_SIM_NOINLINE void pk_sim_exit(const char *file, int line) {
  pk_sim_count_started();
  const pk_sim_self self = {pk_sim_core, pk_sim_thread, pk_sim_started, file, line};
  pk_sim_suspended = true;
  pk_sim_device->exit(&self);
  __builtin_unreachable();
}

// ---- letting others run: a thread that waits for another one in a loop must not keep it from running
PK_SIM_NOINLINE void pk_sim_yield(const char *file, int line) {
  const unsigned x = PK_SIM_OWN(threadIdx).x, y = PK_SIM_OWN(threadIdx).y, z = PK_SIM_OWN(threadIdx).z;
  pk_sim_count_started();
  const pk_sim_self self = {pk_sim_core, pk_sim_thread, pk_sim_started, file, line};
  pk_sim_suspended = true;
  pk_sim_device->yield(&self);
  PK_SIM_OWN(threadIdx).x = x, PK_SIM_OWN(threadIdx).y = y, PK_SIM_OWN(threadIdx).z = z;
  pk_sim_thread = self.thread;
}
#ifndef PK_SIM_CHECK
PK_SIM_INLINE void pk_sim_spin(const char *file, int line) {
#else
PK_SIM_NOINLINE void pk_sim_spin(const char *file, int line) {
#endif
  if (__builtin_expect((++pk_sim_spins & 255u) == 0, 0)) pk_sim_yield(file, line);
}
PK_SIM_INLINE void __nanosleep(unsigned, PK_SIM_HERE) { pk_sim_yield(pk_sim_file, pk_sim_line); }
PK_SIM_INLINE void __threadfence(PK_SIM_HERE) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#ifdef PK_SIM_CHECK
  pk_sim_check_fence();
#endif
  pk_sim_spin(pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void __threadfence_block(PK_SIM_HERE) { __threadfence(pk_sim_file, pk_sim_line); }
PK_SIM_INLINE void __threadfence_system(PK_SIM_HERE) { __threadfence(pk_sim_file, pk_sim_line); }

// ---- output and failures
namespace pk_sim_library {
__attribute__((__format__(__printf__, 1, 2))) PK_SIM_NOINLINE int printf(const char *format, ...) {
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  const int result = pk_sim_device->print(pk_sim_core, format, arguments);
  __builtin_va_end(arguments);
  return result;
}
}  // namespace pk_sim_library

PK_SIM_NOINLINE void pk_sim_fail(pk_sim_failure kind, const char *what, const char *function, const char *file,
                                 int line) {
  pk_sim_device->fail(pk_sim_core, kind, what, function, file, line);
  __builtin_unreachable();
}
[[noreturn]] PK_SIM_INLINE void __trap(PK_SIM_HERE) {
  pk_sim_fail(PK_SIM_FAIL_TRAP, "__trap()", "", pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void __brkpt() {}

// ---- time and heap
namespace pk_sim_library {
PK_SIM_NOINLINE long long clock64() { return (long long)pk_sim_device->nanoseconds(); }
PK_SIM_INLINE clock_t clock() { return (int)clock64(); }
}  // namespace pk_sim_library
PK_SIM_NOINLINE unsigned long long __globaltimer() { return pk_sim_device->nanoseconds(); }
PK_SIM_NOINLINE void *pk_sim_malloc(size_t bytes) { return pk_sim_device->heap(pk_sim_core, nullptr, bytes); }
PK_SIM_NOINLINE void pk_sim_free(void *block, const char *file = "", int line = 0) {
  if (block && pk_sim_device->heap(pk_sim_core, block, 0))
    pk_sim_fail(PK_SIM_FAIL_MEMORY, "what is freed is no block in use: freed before, or not from malloc() or new", "",
                file, line);
}
inline void *operator new(size_t bytes) { return pk_sim_malloc(bytes); }
inline void *operator new[](size_t bytes) { return pk_sim_malloc(bytes); }
inline void operator delete(void *block) noexcept { pk_sim_free(block); }
inline void operator delete[](void *block) noexcept { pk_sim_free(block); }
inline void operator delete(void *block, size_t) noexcept { pk_sim_free(block); }
inline void operator delete[](void *block, size_t) noexcept { pk_sim_free(block); }
inline void *operator new(size_t, void *place) noexcept { return place; }
inline void *operator new[](size_t, void *place) noexcept { return place; }
namespace pk_sim_library {
PK_SIM_INLINE void *malloc(size_t bytes) { return pk_sim_malloc(bytes); }
PK_SIM_INLINE void free(void *block, PK_SIM_HERE) { pk_sim_free(block, pk_sim_file, pk_sim_line); }
}  // namespace pk_sim_library

// ---- what compilers call by themselves
#define PK_SIM_CALLED extern "C" PK_SIM_UNCHECKED __attribute__((__visibility__("hidden"), __used__)) void
PK_SIM_CALLED __stack_chk_fail() {
  pk_sim_fail(PK_SIM_FAIL_STACK, "the stack is overwritten: an access past the end of a local array", "", "", 0);
}
PK_SIM_CALLED __cxa_pure_virtual() { pk_sim_fail(PK_SIM_FAIL_TRAP, "a pure virtual function is called", "", "", 0); }
#ifndef PK_SIM_CHECK
struct pk_sim_division {
  const char *file;
  int line;
};
PK_SIM_CALLED __ubsan_handle_divrem_overflow_abort(const pk_sim_division *place, unsigned long, unsigned long) {
  pk_sim_fail(PK_SIM_FAIL_DIVISION, "integer division by zero", "", place->file, place->line);
}
#endif
