// pk_sim_block.h: the built-in variables, barriers, printf, assert and clocks.
//
// The built-in variables are static thread-locals of the image whose address never escapes: a compiler can therefore
// keep them in registers and vectorise across threads. Whoever may lose the processor saves and restores them itself.
#pragma once
#pragma GCC system_header

static thread_local uint3 threadIdx;
static thread_local uint3 blockIdx;
static thread_local dim3 blockDim;
static thread_local dim3 gridDim;
static constexpr int warpSize = 32;

static const pk_sim_api *pk_sim_device;
static thread_local void *pk_sim_core;
// Linear indices of the running block, and of the running thread in it. Volatile: read after a fault.
static thread_local volatile pk_sim_u64 pk_sim_block;
static thread_local volatile unsigned pk_sim_thread;
static thread_local unsigned pk_sim_started;                               // threads of the block started so far
static thread_local unsigned pk_sim_next_x, pk_sim_next_y, pk_sim_next_z;  // threadIdx of the thread to start next
static thread_local bool pk_sim_suspended;  // some thread of this block has been in a blocking call
static thread_local unsigned pk_sim_spins;
static thread_local void *pk_sim_dynamic_base;
static thread_local unsigned pk_sim_dynamic_bytes;

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
PK_SIM_INLINE pk_sim_pointer<T> pk_sim_dynamic() {
  return (pk_sim_pointer<T>)pk_sim_dynamic_base;
}

// ---- barriers
PK_SIM_COLLECTIVE int pk_sim_barrier(pk_sim_barrier_kind kind, int predicate, const char *file, int line) {
  const unsigned x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  const pk_sim_self self = {pk_sim_core, pk_sim_thread, pk_sim_started, file, line};
  pk_sim_suspended = true;
  const int result = pk_sim_device->barrier(&self, kind, predicate);
  threadIdx.x = x, threadIdx.y = y, threadIdx.z = z;
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

// ---- letting others run: a thread that waits for another one in a loop must not keep it from running
PK_SIM_NOINLINE void pk_sim_yield(const char *file, int line) {
  const unsigned x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  const pk_sim_self self = {pk_sim_core, pk_sim_thread, pk_sim_started, file, line};
  pk_sim_suspended = true;
  pk_sim_device->yield(&self);
  threadIdx.x = x, threadIdx.y = y, threadIdx.z = z;
  pk_sim_thread = self.thread;
}
PK_SIM_INLINE void pk_sim_spin(const char *file, int line) {
  if (__builtin_expect((++pk_sim_spins & 255u) == 0, 0)) pk_sim_yield(file, line);
}
PK_SIM_INLINE void __nanosleep(unsigned, PK_SIM_HERE) { pk_sim_yield(pk_sim_file, pk_sim_line); }
PK_SIM_INLINE void __threadfence(PK_SIM_HERE) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  pk_sim_spin(pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void __threadfence_block(PK_SIM_HERE) { __threadfence(pk_sim_file, pk_sim_line); }
PK_SIM_INLINE void __threadfence_system(PK_SIM_HERE) { __threadfence(pk_sim_file, pk_sim_line); }

// ---- output and failures
__attribute__((format(printf, 1, 2))) PK_SIM_NOINLINE int pk_sim_printf(const char *format, ...) {
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  const int result = pk_sim_device->print(pk_sim_core, format, arguments);
  __builtin_va_end(arguments);
  return result;
}
#define printf(...) pk_sim_printf(__VA_ARGS__)

[[noreturn]] PK_SIM_NOINLINE void pk_sim_fail(pk_sim_failure kind, const char *what, const char *function,
                                              const char *file, int line) {
  pk_sim_device->fail(pk_sim_core, kind, what, function, file, line);
  __builtin_unreachable();
}
#ifdef NDEBUG
#define assert(...) ((void)0)
#else
#define assert(...) \
  ((__VA_ARGS__) ? (void)0 : pk_sim_fail(PK_SIM_FAIL_ASSERT, #__VA_ARGS__, __PRETTY_FUNCTION__, __FILE__, __LINE__))
#endif
[[noreturn]] PK_SIM_INLINE void __trap(PK_SIM_HERE) {
  pk_sim_fail(PK_SIM_FAIL_TRAP, "__trap()", "", pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void __brkpt() {}

// ---- time and heap
PK_SIM_INLINE long long clock64() { return (long long)pk_sim_device->nanoseconds(); }
PK_SIM_INLINE int clock() { return (int)clock64(); }
PK_SIM_INLINE unsigned long long __globaltimer() { return pk_sim_device->nanoseconds(); }
PK_SIM_INLINE void *pk_sim_malloc(size_t bytes) { return pk_sim_device->heap(pk_sim_core, nullptr, bytes); }
PK_SIM_INLINE void pk_sim_free(void *block) {
  if (block) pk_sim_device->heap(pk_sim_core, block, 0);
}
#define malloc(bytes) pk_sim_malloc(bytes)
#define free(block) pk_sim_free(block)
