/* sim.h: what the simulated device exports beside its driver table (native/include/pygpukit/driver.h).
 *
 * What to know of the device
 * - It reports compute capability 9.0, and refuses launches as a device of 9.0 would; clocks and widths are nominal.
 * - Streams never wait for the default stream, nor it for them.
 * - Memory comes in granules of 2 MiB. Inaccessible memory lies around every reserved range and behind a block's
 *   dynamic shared memory: a kernel that goes there faults, and is told with its thread and source line.
 * - Kernels run on min(cores, sms) threads, or on as many as "workers" says; with workers=1 every run is the same.
 * - A block's threads run one after the other and change places only where they wait. There is no lockstep: code that
 *   relies on it without __syncwarp() computes something else here.
 * - Not simulated: timing, occupancy, tensor-core fragments, inline PTX, clusters, grid-wide barriers, and
 *   kernels that launch kernels.
 */
#ifndef PYGPUKIT_SIM_SIM_H
#define PYGPUKIT_SIM_SIM_H

#include <stdint.h>

#include "pygpukit/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Order of pk_sim_counters(). Kept by the device alone, apart from every ledger of the pool and the launch function. */
enum {
  PK_SIM_PHYSICAL_BYTES = 0,         /* physical memory that exists now */
  PK_SIM_PHYSICAL_CREATED_BYTES = 1, /* all physical memory ever created or imported */
  PK_SIM_LAUNCHES = 2,               /* kernel launches accepted */
  PK_SIM_HOST_LAUNCHES = 3,          /* launch_host calls accepted */
  PK_SIM_COPIES = 4,                 /* copies accepted, any direction */
  PK_SIM_COPIED_BYTES = 5,
  PK_SIM_FILLS = 6,
  PK_SIM_FAULTS = 7 /* faults that became sticky, cleared ones included */
};

/* Sums over all simulated devices since the process started. All zero before the device is opened. Never fails. */
void pk_sim_counters(uint64_t out[8]);

/* Moves up to `capacity` bytes of what kernels printed into `buffer` and returns how many; call again until 0. With a
 * null buffer: how many bytes wait. The order is the order of the printf calls; it is only repeatable with workers=1.
 * What exceeds 1 MiB between two calls is dropped, and one line in the output says how much. Output of a launch is
 * complete once a wait on its stream has returned. */
uint64_t pk_sim_take_output(char *buffer, uint64_t capacity);

/* Ends every kernel that runs on the current device with PK_ERROR_LAUNCH_FAILED ("cancelled") as its sticky status, so
 * that what is queued behind is dropped; returns how many, at least 1 when any work was unfinished. Does not wait. For
 * Ctrl-C: cancel, wait for the streams, clear the fault. PK_ERROR_LAUNCH_TIMEOUT is the time limit's alone. */
uint64_t pk_sim_cancel(void);

/* How often a stream has run out of work so far; and a sleep until it happens again, or for so long. A wait that looks
 * at signals now and then reads the number, asks what it waits for, and sleeps: it does not oversleep the end. */
uint64_t pk_sim_idle_count(void);
void pk_sim_await_idle(uint64_t seen, uint64_t microseconds);

/* A fault is sticky: launches, copies, waits and queries of the device return it (memory management goes on working),
 * and work queued behind it is dropped. This forgets it, once the device is idle; the answer is the forgotten status.
 * A real device needs a new process here; a notebook on the simulator does not. */
pk_status pk_sim_clear_fault(void);

/* Whether any simulated device has a fault now. Reads memory and takes no lock. */
int32_t pk_sim_faulted(void);

/* The copy after `copies` more that go from a device to another without the host fails, and with it the device that
 * copies: PK_ERROR_NVLINK_UNCORRECTABLE. */
pk_status pk_sim_fail_link(int32_t from, int32_t to, uint64_t copies);

/* ---- checked kernels: images compiled with PK_SIM_CHECK defined (include/pk_sim_check_abi.h gives the modes) */

/* The mode that a function's image was compiled for, 0 for a plain one. */
int32_t pk_sim_checked(uint64_t function);

/* What a checked launch may touch. */
typedef struct pk_sim_array {
  uint64_t id; /* of the allocation, never given out twice; 0 for memory of others */
  uint64_t address;
  uint64_t bytes; /* as asked for, not rounded */
  uint64_t freed; /* no more an array, but not yet given back: to touch it is a use after free */
  const char *name;
} pk_sim_array;

/* An argument that is an array, a view of one, or a null pointer instead. */
typedef struct pk_sim_argument {
  uint32_t parameter; /* number */
  uint32_t element_bytes;
  const char *name; /* of the parameter */
  uint64_t array;   /* index among the arrays; UINT64_MAX for a null pointer */
  uint64_t address; /* where the view starts */
  uint64_t bytes;   /* and how long it is */
} pk_sim_argument;

/* Describes the calling thread's next launch: every array that exists, and which of them are passed. Copies what it is
 * given. Of an array that is passed, a kernel may touch the views that it is given; all of one that is not. Without it,
 * all memory that is mapped may be touched. */
void pk_sim_describe(const pk_sim_array *arrays, uint64_t array_count, const pk_sim_argument *arguments,
                     uint64_t argument_count);

/* Memory behind an array, up to the end of its block: no kernel has a reason to write there. */
typedef struct pk_sim_zone {
  uint64_t address; /* where the array ends */
  uint64_t bytes;
  uint64_t array_bytes;
  uint32_t item_bytes;
  const char *parameter; /* that the array is passed as */
  const char *array;     /* its name, "" for none */
} pk_sim_zone;

/* The zones of the calling thread's next launch, of a plain kernel; with none those that were told are forgotten. What
 * the kernel has written there is a finding once it has ended. */
void pk_sim_watch_zones(const pk_sim_zone *zones, uint64_t count);

/* Bytes that every small array has behind it at least, by PYGPUKIT_SIM. */
uint64_t pk_sim_guard_bytes(void);

typedef struct pk_sim_finding {
  char kind[32];
  char message[1024];
  char kernel[256];
  char array[128];
  uint32_t block[3], thread[3];
  int32_t line; /* 0 = unknown */
  int32_t has_index;
  int64_t index;
} pk_sim_finding;

/* The finding behind the current device's fault; 0 when there is none, or its kernel was a plain one. Stays until the
 * fault is cleared. */
int32_t pk_sim_get_finding(pk_sim_finding *finding);

/* Bytes that checked kernels of mode PK_SIM_CHECK_COUNT moved on the current device, and their floating-point
 * operations, since the last call: global loads, global stores, shared loads, shared stores, operations. */
void pk_sim_take_traffic(uint64_t out[5]);

#ifdef __cplusplus
}
#endif
#endif
