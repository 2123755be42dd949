/* core.h: what the Rust core offers to C++ (plain extern "C", same shared object). Only pk_pool_raise() needs the GIL
 * and touches Python. */
#ifndef PYGPUKIT_CORE_H
#define PYGPUKIT_CORE_H

#include <stdint.h>

#include "pygpukit/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who owns a block: interned ids, 0 = unknown. Kept by the pool, written into every record. */
typedef struct pk_owner {
  uint32_t tenant;
  uint32_t name;
  uint32_t cell;    /* interned cell id */
  uint32_t line;    /* 1-based line in that cell, 0 = unknown */
  uint64_t account; /* of the pool: what the block counts for, 0 = none */
} pk_owner;

/* Shared between the pool and launchers without a lock. A launcher pins, checks resident, launches, unpins; the evictor
 * clears resident first and backs off when pins != 0 (both sides sequentially consistent). */
typedef struct pk_block_state {
  uint32_t pins;
  uint32_t resident;
  uint64_t last_use; /* any increasing tick; the pool's LRU key */
} pk_block_state;

typedef struct pk_allocation {
  uint64_t address;
  uint64_t bytes;        /* rounded up to the size class */
  uint64_t block;        /* id inside its pool; never reused */
  pk_block_state *state; /* valid until the block is freed */
} pk_allocation;

enum { PK_POOL_OK = 0, PK_POOL_MISS = 1, PK_POOL_OUT_OF_MEMORY = 2, PK_POOL_BAD_BLOCK = 3, PK_POOL_DRIVER_ERROR = 4 };

/* The default pool of a device (made on first use); an opaque handle valid for the life of the process. 0 on failure.
 */
uint64_t pk_pool_default(int32_t device);
/* Fast path: only a cached block of the same class and stream. Never calls the driver, never waits. MISS otherwise. */
int32_t pk_pool_try_alloc(uint64_t pool, uint64_t bytes, uint64_t stream, const pk_owner *owner, pk_allocation *out);
/* Slow path: may map segments, wait for streams, evict. Call without the GIL. */
int32_t pk_pool_alloc(uint64_t pool, uint64_t bytes, uint64_t stream, const pk_owner *owner, pk_allocation *out);
int32_t pk_pool_free(uint64_t pool, uint64_t block);
/* Counts memory that a driver lays out itself as a block of the pool, under its limits; other memory may be evicted for
 * it. The device has yet to be asked for the memory. Call without the GIL. */
int32_t pk_pool_take_outside(uint64_t pool, uint64_t bytes, const pk_owner *owner, uint64_t *block);
int32_t pk_pool_give_outside(uint64_t pool, uint64_t block);
/* Gives back what lies behind the first `bytes` of a block, which keeps its address and its id. */
int32_t pk_pool_shorten(uint64_t pool, uint64_t block, uint64_t bytes);
/* The block is about to be used on a stream other than its own: its memory is not reused before that stream has passed
 * this point. */
int32_t pk_pool_record_use(uint64_t pool, uint64_t block, uint64_t stream);
/* Bring an evicted block back to its address and pin it, in one step (may evict others, waits). account: whose use it
 * is for. Call without the GIL. */
int32_t pk_pool_pin(uint64_t pool, uint64_t block, uint64_t account);
/* Warns, once a pool, when evicted blocks went to pageable host memory: after calls that may have evicted. Needs the
 * GIL; never fails. */
void pk_pool_tell(uint64_t pool);
/* What a block is called in reports: an interned name. */
int32_t pk_pool_set_name(uint64_t pool, uint64_t block, uint32_t name);
uint32_t pk_pool_name(uint64_t pool, uint64_t block);
/* Text of an interned id, copied into buffer (at most capacity bytes, no NUL); returns its length, 0 for an unknown id.
 */
uint64_t pk_name_text(uint32_t id, char *buffer, uint64_t capacity);
/* Sets the Python exception for this thread's last pool failure (numbers, largest owners). The one call here that needs
 * the GIL. */
void pk_pool_raise(void);

/* Streams tell the pools under which short id records name them, and before they are destroyed. retired() waits for the
 * stream: call it without the GIL. */
void pk_stream_created(uint64_t stream, uint32_t id);
int32_t pk_stream_retired(uint64_t stream);

/* Orders a stream of a device after an asynchronous transfer; with host != 0 waits for its end instead. At most so
 * long: call it without the GIL. ENDED also for an unknown one. Any other status: it failed, once told by
 * pk_pool_raise(). */
enum { PK_TRANSFER_ENDED = 0, PK_TRANSFER_ORDERED = 1, PK_TRANSFER_NOT_YET = 2 };
int32_t pk_transfer_order(uint64_t engine, uint64_t transfer, int32_t device, uint64_t stream, int32_t host,
                          uint64_t timeout_ns);

/* Event ring. kind and the meaning of a, b, c: docs/seams.md. Lock-free, about 30 ns. */
typedef struct pk_event {
  uint16_t kind;
  uint16_t device;
  uint32_t stream; /* short id, not the handle */
  uint32_t tenant;
  uint32_t name;
  uint64_t a, b, c;
  uint32_t cell;
  uint32_t line;
} pk_event;
uint64_t pk_ring_push(const pk_event *event);                   /* returns its sequence number */
uint64_t pk_ring_push_at(uint64_t t_ns, const pk_event *event); /* of a time that was read before */
uint64_t pk_now_ns(void); /* the ring's clock: monotonic, ns since process start */
uint32_t pk_intern(const char *utf8, uint64_t bytes);

/* The gate: every piece of work of a thread in a scheduling context passes it. While several tasks want a device it
 * keeps copies of commands and issues them in turn from a thread of its own. */
enum { PK_WORK_KERNEL = 0, PK_WORK_TRANSFER = 1, PK_WORK_FILL = 2 }; /* a graph is a kernel */
typedef struct pk_gate_work {
  uint64_t stream;
  uint64_t size; /* with name: which works take the same time. Blocks of a kernel, bytes of a copy */
  uint32_t name; /* interned */
  int32_t device;
  uint32_t grid[3]; /* of a kernel */
  uint32_t kind;    /* PK_WORK_... */
  uint64_t wave;    /* blocks that the device runs at once, of a kernel that can be launched in parts; else 0 */
} pk_gate_work;
/* keep() makes a copy that owns all it needs; issue() works on both, from any thread; drop() ends the copy. Of a copy,
 * issue_part() issues a box of its blocks (only with a wave); want_parts() says, of both, that the gate would like to,
 * now or once another task comes: it must not wait. Both are NULL where there are no parts. */
typedef struct pk_command {
  void *self;
  pk_status (*issue)(void *self);
  void *(*keep)(void *self);
  void (*drop)(void *kept);
  pk_status (*issue_part)(void *kept, const uint32_t first[3], const uint32_t extent[3]);
  void (*want_parts)(void *self);
} pk_command;
/* STOPPED: the context's task was cancelled or expired, the work must not happen. FULL: the task's line is full, or it
 * is paused: wait, then submit again.
 * INTERRUPTED: a signal handler raised meanwhile (C++ only). */
enum { PK_GATE_STOPPED = -1, PK_GATE_FULL = -2, PK_GATE_INTERRUPTED = -3 };
#define PK_ANY_STREAM UINT64_MAX
/* PK_OK: issued or deferred. A driver's status: refused, or an earlier command was: pk_gate_error_text(). Never waits.
 */
int32_t pk_gate_submit(uint64_t context, const pk_gate_work *work, const pk_command *command);
/* Waits until it makes sense to submit again, at most so long. Call without the GIL. */
void pk_gate_wait(uint64_t context, const pk_gate_work *work, uint64_t timeout_ns);
/* For work of the context that does not pass the gate: PK_OK when it may happen, STOPPED, or FULL when the task is
 * still paused after so long; call without the GIL when that is more than 0. */
int32_t pk_gate_enter(uint64_t context, uint64_t timeout_ns);
/* Work of the context that did not pass the gate was done: so long it had the device, or the host in its stead. */
void pk_gate_note(uint64_t context, int32_t device, uint64_t stream, uint64_t ns);
/* The context's task submitted a kernel or a copy, by the gate or past it: a figure of its partition. */
void pk_task_count(uint64_t context, uint32_t kind);
/* A stream was made for the multiprocessors of a partition: its work passes a gate of their own, not that of the rest
 * of the device (lane 0). */
void pk_gate_lane(uint64_t stream, uint32_t lane);
/* How many commands are deferred or refused and not reported, on all devices. Never moves. */
const uint64_t *pk_gate_deferred(void);
int32_t pk_gate_has_deferred(int32_t device, uint64_t stream);
/* Waits until everything deferred for the stream is issued; the status of a refusal that was not reported yet. */
pk_status pk_gate_drain(int32_t device, uint64_t stream);
pk_status pk_gate_refusal(int32_t device, uint64_t stream);
/* The text of the refusal that the thread was told last, if it had this status, once; else NULL. */
const char *pk_gate_error_text(pk_status status);
/* Sleeps of the calling thread end when they should (C++ has it, the gate's thread calls it). */
void pk_sleep_exactly(void);
/* Ends the gates' threads: nothing deferred is issued any more. */
void pk_gate_close(void);

/* Ledger of the one launch function and of copies: always on, relaxed counters. */
enum {
  PK_COUNT_LAUNCH = 0,
  PK_COUNT_HOST_LAUNCH = 1,
  PK_COUNT_H2D_BYTES = 2,
  PK_COUNT_D2H_BYTES = 3,
  PK_COUNT_D2D_BYTES = 4,
  PK_COUNT_FILL = 5,
  PK_COUNT_TASK_NS = 6,          /* device time of tasks, counted by the core */
  PK_COUNT_LATER_PARTS = 7,      /* of launches that the gate cut, counted by the core, as what follows */
  PK_COUNT_PAGEABLE_BUFFERS = 8, /* host memory that was to be pinned */
  PK_COUNT_PAGEABLE_BYTES = 9,
  PK_COUNTERS = 10
};
void pk_count(uint32_t counter, uint64_t amount);

/* Offered by C++ to the core: makes a device current for the calling thread, cheap when it already is. Both sides go
 * through it, so that each knows which device is current. */
pk_status pk_use_device(int32_t device);
/* Offered by C++ to the core: whether this process was forked by one that had opened the device. pk_use_device() fails
 * in it; what takes a lock before it comes to that asks here first. */
int32_t pk_forked(void);
/* Offered by C++ to the core: counts what was copied from a device to another one. */
void pk_peer_copied(int32_t from, int32_t to, uint64_t bytes);
/* Offered by C++ to the core: whether a fault that was seen still stands, after which the device answers nothing else.
 * A CUDA context never recovers; simulated devices do, all of them must have. */
int32_t pk_fault_stands(void);
/* Offered by C++ to the core: the scheduling context and the account of the calling thread, 0 = none. */
uint64_t pk_current_context(void);
uint64_t pk_current_account(void);

/* Called once by C++ when the backend is chosen, before any other call above. raw: the same functions without regard to
 * what is deferred, for the gate. */
void pk_core_attach(const pk_driver *driver, const pk_driver *raw);

#ifdef __cplusplus
}
#endif
#endif
