/* driver.h: the one table of device functions (the C ABI seam). native/cuda and native/sim each fill it; Rust and C++
 * see nothing else.
 *
 * Rules of the table
 * - Every function returns a status: 0, or a CUresult number (the simulator uses the same numbers). Text for the last
 *   failure on the calling thread comes from error_text().
 * - Handles are opaque 64-bit integers. Stream 0 is the device's default stream. Address 0 is never valid.
 * - device_use() makes a device current for the calling thread; every other call acts on that device.
 * - Nothing here blocks except where the name says wait, or the comment does. No function calls back into Python.
 * - New functions are appended and the version is raised; a caller checks version and size_bytes before use.
 */
#ifndef PYGPUKIT_DRIVER_H
#define PYGPUKIT_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PK_DRIVER_VERSION 8u

typedef int32_t pk_status;

enum {
  PK_OK = 0,
  PK_ERROR_INVALID_VALUE = 1,
  PK_ERROR_OUT_OF_MEMORY = 2,
  PK_ERROR_NOT_INITIALIZED = 3,
  PK_ERROR_NO_DEVICE = 100,
  PK_ERROR_INVALID_DEVICE = 101,
  PK_ERROR_INVALID_IMAGE = 200,
  PK_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  PK_ERROR_NVLINK_UNCORRECTABLE = 220,
  PK_ERROR_INVALID_HANDLE = 400,
  PK_ERROR_NOT_FOUND = 500,
  PK_ERROR_NOT_READY = 600,
  PK_ERROR_ILLEGAL_ADDRESS = 700,
  PK_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  PK_ERROR_LAUNCH_TIMEOUT = 702,
  PK_ERROR_ASSERT = 710,
  PK_ERROR_MISALIGNED_ADDRESS = 716,
  PK_ERROR_LAUNCH_FAILED = 719,
  PK_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  PK_ERROR_NOT_SUPPORTED = 801,
  PK_ERROR_CAPTURE_UNSUPPORTED = 900,
  PK_ERROR_INVALID_CLUSTER_SIZE = 912,
  PK_ERROR_UNKNOWN = 999
};

typedef struct pk_device_info {
  char name[128];
  uint64_t total_memory_bytes;
  uint8_t uuid[16];
  int32_t compute_major;
  int32_t compute_minor;
  int32_t multiprocessor_count;
  int32_t warp_size;
  int32_t max_threads_per_block;
  int32_t max_threads_per_multiprocessor;
  int32_t max_block[3];
  int32_t max_grid[3];
  int32_t max_shared_per_block_bytes; /* without opt-in, 49152 on every device we support */
  int32_t max_shared_per_block_optin_bytes;
  int32_t max_shared_per_multiprocessor_bytes;
  int32_t registers_per_multiprocessor;
  int32_t l2_bytes;
  int32_t clock_khz;
  int32_t memory_clock_khz;
  int32_t memory_bus_bits;
  int32_t driver_version; /* 13000 = 13.0; 0 on the simulator */
  int32_t mps;            /* 1: its contexts are shared through an MPS server; 0: they are not; -1: nobody can tell */
} pk_device_info;

typedef struct pk_function_info {
  int32_t max_threads_per_block;
  int32_t static_shared_bytes;
  int32_t const_bytes;
  int32_t local_bytes;
  int32_t registers;
  int32_t binary_version; /* 90 for sm_90; 0 on the simulator */
  int32_t param_count;    /* -1 when the driver cannot tell */
} pk_function_info;

enum { PK_LAUNCH_COOPERATIVE = 1u, PK_LAUNCH_CLUSTER = 2u, PK_LAUNCH_PDL = 4u, PK_LAUNCH_SLICE = 8u };

/* With PK_LAUNCH_SLICE one more parameter points at this: the grid of the launch is the part of `whole` that begins at
 * block `first`. Its blocks follow one another in `whole` (a part of a row, rows of a plane, or planes). Not with
 * PK_LAUNCH_COOPERATIVE or clusters. On cuda the function must take it as its last parameter (core: slicing); on sim
 * any function will do. */
typedef struct pk_slice {
  uint32_t first[3];
  uint32_t whole[3];
} pk_slice;

typedef struct pk_launch {
  uint64_t function;
  uint64_t stream;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes; /* dynamic */
  uint32_t flags;        /* PK_LAUNCH_* */
  uint32_t cluster[3];   /* used with PK_LAUNCH_CLUSTER */
  uint32_t reserved;
  void **params; /* as cuLaunchKernel's kernelParams: one pointer per parameter; read before the call returns */
} pk_launch;

/* Arrays: memory in a layout of the device's own, for textures and surfaces. Numbers are CUDA's. */
enum {
  PK_FORMAT_UINT8 = 1,
  PK_FORMAT_UINT16 = 2,
  PK_FORMAT_UINT32 = 3,
  PK_FORMAT_INT8 = 8,
  PK_FORMAT_INT16 = 9,
  PK_FORMAT_INT32 = 10,
  PK_FORMAT_FLOAT16 = 16,
  PK_FORMAT_FLOAT32 = 32
};
static inline uint32_t pk_format_bytes(uint32_t format) {
  if (format >= PK_FORMAT_FLOAT16) return format == PK_FORMAT_FLOAT16 ? 2u : 4u;
  return 1u << (format >= PK_FORMAT_INT8 ? format - PK_FORMAT_INT8 : format - PK_FORMAT_UINT8);
}
enum { PK_ARRAY_LAYERED = 1u, PK_ARRAY_SURFACE = 2u, PK_ARRAY_CUBEMAP = 4u, PK_ARRAY_GATHER = 8u };

typedef struct pk_array {
  uint64_t width;  /* in elements of `channels` numbers each */
  uint64_t height; /* 0: one dimension */
  uint64_t depth;  /* 0: at most two; layers, faces (6), or faces of all layers with the flags that say so */
  uint32_t format;
  uint32_t channels; /* 1, 2 or 4 */
  uint32_t flags;    /* PK_ARRAY_* */
  uint32_t levels;   /* of a mipmapped array; 0: a plain one */
} pk_array;

/* All of an array, or of a level of a mipmapped one, and as many dense rows of device memory. */
typedef struct pk_array_copy {
  uint64_t array; /* a plain one, or from array_level() */
  uint64_t address;
  uint64_t row_bytes, rows, slices;
  uint32_t into_array; /* else out of it */
  uint32_t reserved;
} pk_array_copy;

enum { PK_RESOURCE_ARRAY = 0, PK_RESOURCE_MIPMAPPED = 1, PK_RESOURCE_LINEAR = 2, PK_RESOURCE_PITCHED = 3 };
enum { PK_ADDRESS_WRAP = 0, PK_ADDRESS_CLAMP = 1, PK_ADDRESS_MIRROR = 2, PK_ADDRESS_BORDER = 3 };
enum { PK_FILTER_POINT = 0, PK_FILTER_LINEAR = 1 };
enum { PK_TEXTURE_INTEGERS = 1u, PK_TEXTURE_NORMALIZED_COORDINATES = 2u }; /* without the first: integers as 0..1 */

typedef struct pk_texture {
  uint32_t resource; /* PK_RESOURCE_* */
  uint32_t flags;    /* PK_TEXTURE_* */
  uint64_t memory;   /* an array, a mipmapped array, or an address */
  /* Of linear and pitched memory; a linear one has a width only. */
  uint32_t format, channels;
  uint64_t width, height, pitch_bytes;
  uint32_t address_modes[3];
  uint32_t filter;
  uint32_t mipmap_filter;
  float level_bias, least_level, most_level;
  float border[4];
} pk_texture;

/* Where linear and pitched memory of textures must begin, and what their rows' pitch must be a multiple of. */
enum { PK_TEXTURE_ALIGNMENT = 512, PK_TEXTURE_PITCH_ALIGNMENT = 32 };

/* What a device can do with the memory of another one, its peer. */
typedef struct pk_peer_info {
  double bytes_per_s;       /* of copies to the peer; 0 where nobody says */
  double latency_s;         /* of one copy; 0 where nobody says */
  int32_t access;           /* 1: its kernels can read and write it, and copies go without the host */
  int32_t enabled;          /* 1: peer_enable() was called, so that they do */
  int32_t atomics;          /* 1: atomic operations on it are atomic for both; -1 where nobody says */
  int32_t performance_rank; /* of the link among those of the machine, 0 the fastest; -1 where nobody says */
} pk_peer_info;

typedef struct pk_driver {
  uint32_t version;
  uint32_t size_bytes;
  const char *name; /* "cuda" or "sim" */

  /* errors */
  const char *(*error_name)(pk_status status); /* "CUDA_ERROR_OUT_OF_MEMORY"; never NULL */
  const char *(*error_text)(pk_status status); /* one sentence, with this thread's last detail; never NULL */

  /* devices */
  pk_status (*device_count)(int32_t *count);
  pk_status (*device_info)(int32_t device, pk_device_info *info);
  pk_status (*device_use)(int32_t device); /* the first call per device creates its context */
  pk_status (*device_wait)(void);          /* blocks until the current device is idle */
  pk_status (*memory_info)(uint64_t *free_bytes, uint64_t *total_bytes);

  /* virtual memory: sizes and addresses are multiples of granularity() */
  pk_status (*granularity)(uint64_t *bytes);
  pk_status (*address_reserve)(uint64_t bytes, uint64_t *address);
  pk_status (*address_free)(uint64_t address, uint64_t bytes);
  pk_status (*physical_create)(uint64_t bytes, uint64_t *physical); /* exportable as a file descriptor */
  pk_status (*physical_release)(uint64_t physical);
  pk_status (*map)(uint64_t address, uint64_t bytes, uint64_t physical); /* whole physical, read and write access */
  pk_status (*unmap)(uint64_t address, uint64_t bytes);         /* does not wait for kernels: the caller must */
  pk_status (*physical_export)(uint64_t physical, int32_t *fd); /* the caller closes fd */
  pk_status (*physical_import)(int32_t fd, uint64_t bytes, uint64_t *physical);

  /* pinned host memory */
  pk_status (*host_alloc)(uint64_t bytes, void **host);
  pk_status (*host_free)(void *host);

  /* copies and fills, in stream order. Pageable host memory must stay valid until the stream has passed the copy. */
  pk_status (*copy_h2d)(uint64_t dst, const void *src, uint64_t bytes, uint64_t stream);
  pk_status (*copy_d2h)(void *dst, uint64_t src, uint64_t bytes, uint64_t stream);
  pk_status (*copy_d2d)(uint64_t dst, uint64_t src, uint64_t bytes, uint64_t stream);
  pk_status (*fill)(uint64_t dst, uint32_t pattern, uint32_t width_bytes, uint64_t count,
                    uint64_t stream); /* width 1, 2, 4 */

  /* streams: priority 0 is the lowest, -5 the most urgent */
  pk_status (*stream_create)(int32_t priority, uint64_t *stream);
  pk_status (*stream_destroy)(uint64_t stream);
  pk_status (*stream_query)(uint64_t stream); /* PK_OK, PK_ERROR_NOT_READY, or a fault */
  pk_status (*stream_wait)(uint64_t stream);  /* blocks */
  pk_status (*stream_wait_event)(uint64_t stream, uint64_t event);

  /* events */
  pk_status (*event_create)(int32_t timing, uint64_t *event);
  pk_status (*event_destroy)(uint64_t event);
  pk_status (*event_record)(uint64_t event, uint64_t stream);
  pk_status (*event_query)(uint64_t event);
  pk_status (*event_wait)(uint64_t event); /* blocks */
  pk_status (*event_elapsed)(uint64_t start, uint64_t end, double *milliseconds);

  /* modules: a CUBIN, or PTX that ends in its only NUL, on cuda; an object made by pygpukit.jit.simulator on sim */
  pk_status (*module_load)(const void *image, uint64_t bytes, uint64_t *module);
  pk_status (*module_unload)(uint64_t module);
  pk_status (*module_function)(uint64_t module, const char *name, uint64_t *function);
  pk_status (*module_global)(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes);
  pk_status (*function_info)(uint64_t function, pk_function_info *info);
  pk_status (*function_param)(uint64_t function, uint32_t index, uint64_t *offset,
                              uint64_t *bytes); /* PK_ERROR_INVALID_VALUE past the end */
  pk_status (*function_set_dynamic_shared)(uint64_t function, uint32_t bytes);
  pk_status (*function_occupancy)(uint64_t function, uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks);

  /* launches: asynchronous; a fault shows in a later query or wait */
  pk_status (*launch)(const pk_launch *launch);
  pk_status (*launch_host)(uint64_t stream, void (*fn)(void *),
                           void *arg); /* fn runs off the calling thread, in stream order */

  /* graphs: launches on a stream between begin and end become a graph and run when that is launched. Nothing but
   * launches goes to a captured stream. A graph keeps nothing alive: modules and memory must outlive it. */
  pk_status (*capture_begin)(uint64_t stream); /* not the default stream */
  pk_status (*capture_end)(uint64_t stream, uint64_t *graph);
  pk_status (*graph_launch)(uint64_t graph, uint64_t stream);
  pk_status (*graph_destroy)(uint64_t graph); /* also while it runs */

  /* partitions of the multiprocessors (green contexts). A device is split once into small groups, the same for every
   * caller. A partition is a set of them, and kernels on its streams run there and nowhere else; who makes partitions
   * that overlap, or uses other streams, shares them. PK_ERROR_NOT_SUPPORTED, with the reason, where that cannot be. */
  pk_status (*sm_groups)(int32_t *sms, uint32_t capacity, uint32_t *count); /* multiprocessors of each group */
  pk_status (*sm_partition_create)(const uint32_t *groups, uint32_t count, int32_t *sms, uint64_t *partition);
  pk_status (*sm_partition_destroy)(uint64_t partition); /* after its streams */
  pk_status (*sm_stream_create)(uint64_t partition, int32_t priority, uint64_t *stream);

  /* Assembles PTX that ends in its only NUL to a CUBIN for the current device, and hands that to take(to, ...), which
   * copies it: it is gone afterwards. Launches of other threads go on meanwhile; module_load() of PTX holds them up. */
  pk_status (*ptx_assemble)(const void *ptx, uint64_t bytes, void (*take)(void *to, const void *cubin, uint64_t bytes),
                            void *to); /* PK_ERROR_NOT_SUPPORTED on sim */

  /* Arrays, textures and surfaces. Destroyed only when no work on the device uses them any more: the caller waits. */
  pk_status (*array_create)(const pk_array *shape, uint64_t *array);
  pk_status (*array_destroy)(uint64_t array, uint32_t levels);                   /* as it was created */
  pk_status (*array_level)(uint64_t mipmapped, uint32_t level, uint64_t *array); /* goes with the mipmapped array */
  pk_status (*array_copy)(const pk_array_copy *copy, uint64_t stream);
  pk_status (*texture_create)(const pk_texture *texture, uint64_t *object); /* as kernels take it */
  pk_status (*texture_destroy)(uint64_t object);
  pk_status (*surface_create)(uint64_t array, uint64_t *object); /* made with PK_ARRAY_SURFACE */
  pk_status (*surface_destroy)(uint64_t object);

  /* Peers: devices that reach each other's memory. Never by multicast. */
  pk_status (*peer_info)(int32_t device, int32_t peer, pk_peer_info *info);
  /* The current device may from now on read and write what is mapped on the peer, and what will be; memory of another
   * process that is mapped there excepted. Done already: PK_OK. */
  pk_status (*peer_enable)(int32_t peer);
  /* On a stream of the current device, which is one of the two. By way of the host unless access is enabled. */
  pk_status (*copy_peer)(uint64_t dst, int32_t dst_device, uint64_t src, int32_t src_device, uint64_t bytes,
                         uint64_t stream);

  /* For whole programs. A stream that waits for the default stream, and that one for it; memory that host and device
   * both touch; host memory of others that is pinned, and reached by kernels at its address. */
  pk_status (*stream_create_ordered)(int32_t priority, uint64_t *stream);
  pk_status (*managed_alloc)(uint64_t bytes, uint64_t *address);
  pk_status (*managed_free)(uint64_t address, uint64_t bytes);
  pk_status (*host_register)(void *host, uint64_t bytes);
  pk_status (*host_unregister)(void *host);
  /* By CUDA's number of it. PK_ERROR_NOT_SUPPORTED on sim, whose info is all that there is. */
  pk_status (*device_attribute)(int32_t device, int32_t attribute, int32_t *value);
} pk_driver;

/* Opens libcuda and returns its table, or NULL with the reason (one sentence, static or thread-local) in *why. */
const pk_driver *pk_cuda_driver(const char **why);
/* NULL when pk_cuda_driver() gives a table; else the reason. Creates no context. */
const char *pk_cuda_probe(void);
/* The simulated devices. Reads PYGPUKIT_SIM once ("sms=8,memory=2GiB,copy_gbps=0,devices=1,workers=0") and
 * PYGPUKIT_SIM_DEVICES, which says how many devices alone, PYGPUKIT_SIM_LINK and PYGPUKIT_SIM_PEERS, which say how they
 * reach each other; NULL and *why on a bad value. */
const pk_driver *pk_sim_driver(const char **why);

#ifdef __cplusplus
}
#endif
#endif
