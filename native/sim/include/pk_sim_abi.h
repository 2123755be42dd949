// pk_sim_abi.h: what a compiled kernel image and the simulated device know of each other. Included by both; includes
// nothing.
#ifndef PK_SIM_ABI_H
#define PK_SIM_ABI_H

#define PK_SIM_ABI 4u

typedef unsigned long long pk_sim_u64;

struct pk_sim_dim {
  unsigned x, y, z;
};

// One launch as a kernel sees it.
struct pk_sim_grid {
  void *core;  // handed back in every call of the device
  pk_sim_dim grid, block;
  void *dynamic_shared;  // this core's; every block it runs gets the same address
  unsigned dynamic_shared_bytes;
  unsigned cooperative;  // launched so that grid.sync() works
  pk_sim_dim cluster;    // blocks of a cluster; 1 x 1 x 1 without clusters
};

// A thread of the running block, in a blocking call: its linear index, and how many threads have been started so far.
struct pk_sim_self {
  void *core;
  unsigned thread;
  unsigned started;
  const char *file;
  int line;
};

enum pk_sim_barrier_kind {
  PK_SIM_BARRIER,
  PK_SIM_BARRIER_COUNT,
  PK_SIM_BARRIER_AND,
  PK_SIM_BARRIER_OR,
  PK_SIM_BARRIER_CLUSTER,
  PK_SIM_BARRIER_GRID
};

enum pk_sim_warp_op {
  PK_SIM_SYNCWARP,
  PK_SIM_SHFL,
  PK_SIM_SHFL_UP,
  PK_SIM_SHFL_DOWN,
  PK_SIM_SHFL_XOR,
  PK_SIM_BALLOT,
  PK_SIM_ANY,
  PK_SIM_ALL,
  PK_SIM_ACTIVEMASK,
  PK_SIM_MATCH_ANY,
  PK_SIM_MATCH_ALL,
  PK_SIM_REDUCE_ADD,
  PK_SIM_REDUCE_MIN_SIGNED,
  PK_SIM_REDUCE_MAX_SIGNED,
  PK_SIM_REDUCE_MIN,
  PK_SIM_REDUCE_MAX,
  PK_SIM_REDUCE_AND,
  PK_SIM_REDUCE_OR,
  PK_SIM_REDUCE_XOR,
  PK_SIM_MATRIX,  // value: the address of the lane's pk_sim_warp_frame
  PK_SIM_WARP_OPS
};

// What the lanes of a whole warp compute together: the last one to arrive runs it for all.
struct pk_sim_warp_work {
  const char *name;                      // of the function or instruction
  void (*compute)(void *const *frames);  // of lanes 0 to 31
};
// What a lane brings; its work says what follows.
struct pk_sim_warp_frame {
  const pk_sim_warp_work *work;
};

struct pk_sim_warp_call {
  pk_sim_warp_op op;
  unsigned mask;
  pk_sim_u64 value;
  int lane;  // source lane, delta or lane mask of a shuffle
  int width;
  const void *site;  // where __activemask() was called: lanes at one site count as converged
};

enum pk_sim_failure {
  PK_SIM_FAIL_ASSERT,
  PK_SIM_FAIL_TRAP,
  PK_SIM_FAIL_DIVISION,
  PK_SIM_FAIL_STACK,
  PK_SIM_FAIL_MEMORY,
  PK_SIM_FAIL_MATRIX
};

// One fetch from a texture, as a kernel asks for it.
enum pk_sim_texture_flags {
  PK_SIM_LAYERED = 1,
  PK_SIM_CUBEMAP = 2,
  PK_SIM_INTEGER = 4,   // tex1Dfetch: `at` is not used, `number` is
  PK_SIM_GATHER = 8,    // `number` is the channel
  PK_SIM_LEVEL = 16,    // of a mipmapped array, as `dx[0]` says
  PK_SIM_GRADIENT = 32  // as `dx` and `dy` say
};
// A number type: its kind's letter in the upper byte, its size in the lower: 'f' << 8 | 4.
struct pk_sim_texture_call {
  pk_sim_u64 object;
  unsigned dimensions, flags;
  float at[3], dx[3], dy[3];
  int layer, number;
  unsigned type, channels;  // that are asked for
  const char *name, *file;
  int line;
};

// One access to a surface. `at` is in bytes, rows and slices.
enum pk_sim_surface_mode { PK_SIM_SURFACE_ZERO, PK_SIM_SURFACE_CLAMP, PK_SIM_SURFACE_TRAP };
struct pk_sim_surface_call {
  pk_sim_u64 object;
  unsigned dimensions, flags;
  int at[3];
  int layer;  // or the face, or the face of all layers
  pk_sim_surface_mode mode;
  unsigned write;
  unsigned type, channels;
  const char *name, *file;
  int line;
};

// What the device offers to a kernel. A checked build of the same header may use more of it later: append only.
struct pk_sim_api {
  unsigned abi, bytes;
  int (*barrier)(const pk_sim_self *self, pk_sim_barrier_kind kind, int predicate);
  pk_sim_u64 (*warp)(const pk_sim_self *self, const pk_sim_warp_call *call);
  void (*yield)(const pk_sim_self *self);
  int (*print)(void *core, const char *format, __builtin_va_list arguments);
  // Never returns. function is the enclosing one's signature, or empty.
  void (*fail)(void *core, pk_sim_failure kind, const char *what, const char *function, const char *file, int line);
  pk_sim_u64 (*nanoseconds)(void);
  void *(*heap)(void *core, void *block, pk_sim_u64 bytes);  // block 0: malloc; else free: gives back what is none
  // Where the block of this rank in the cluster keeps what is at `address` in the caller's shared memory; null when
  // `address` is not shared memory.
  void *(*map_shared)(void *core, const void *address, unsigned rank);
  // The block of the cluster whose shared memory `address` is in; ~0u when it is in none.
  unsigned (*shared_rank)(void *core, const void *address);
  unsigned (*multiprocessor)(void *core);           // that the running block is on
  void *(*scratch)(void *block, pk_sim_u64 bytes);  // the headers' own memory, 64-byte aligned; block 0: takes some
  // Four channels: bits of floats, or of integers as wide as these.
  void (*texture)(void *core, const pk_sim_texture_call *call, unsigned *channels);
  void (*surface)(void *core, const pk_sim_surface_call *call, void *element);
  void (*exit)(const pk_sim_self *self);  // ends the thread; never returns
};

struct pk_sim_kernel {
  const char *name;  // as the host asks for it: qualified name or name expression
  void (*address)(void);
  // Runs whole blocks [first, last) on the calling thread and returns the next block to run: earlier than last when
  // threads of a block were suspended, which the caller must then see to their end first.
  pk_sim_u64 (*run)(void *const *arguments, const pk_sim_grid *grid, pk_sim_u64 first, pk_sim_u64 last);
  void (*resume)(void *const *arguments);  // starts the threads of the current block that nobody has started yet
  unsigned parameter_count;
  unsigned max_threads;  // __launch_bounds__, or 1024
  const unsigned *parameter_bytes;
  const unsigned *parameter_align;
  unsigned cluster[3];  // __cluster_dims__, or zeros
};

// Linear indices of the block and of the thread that last started or went on.
struct pk_sim_position {
  pk_sim_u64 block;
  unsigned thread;
};

// The one exported symbol, pk_sim_image_v1.
struct pk_sim_image {
  unsigned abi, bytes;
  unsigned kernel_count;
  const pk_sim_kernel *const *kernels;
  void (*bind)(const pk_sim_api *api);
  void *(*anchor)(void);                   // pk_sim_anchor in this thread's copy of the image's thread-local memory
  void (*position)(pk_sim_position *out);  // who was running on this thread
};

#endif
