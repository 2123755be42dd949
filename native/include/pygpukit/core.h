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
  uint32_t cell; /* interned cell id */
  uint32_t line; /* 1-based line in that cell, 0 = unknown */
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
/* Gives back what lies behind the first `bytes` of a block, which keeps its address and its id. */
int32_t pk_pool_shorten(uint64_t pool, uint64_t block, uint64_t bytes);
/* The block is about to be used on a stream other than its own: its memory is not reused before that stream has passed
 * this point. */
int32_t pk_pool_record_use(uint64_t pool, uint64_t block, uint64_t stream);
/* Bring an evicted block back to its address (may evict others, waits). Call without the GIL. */
int32_t pk_pool_restore(uint64_t pool, uint64_t block);
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
uint64_t pk_ring_push(const pk_event *event); /* returns its sequence number */
uint64_t pk_now_ns(void);                     /* the ring's clock: monotonic, ns since process start */
uint32_t pk_intern(const char *utf8, uint64_t bytes);

/* The gate: called by the launch function only while a scheduling context is active on the thread. pk_gate_before()
 * answers PK_GATE_STOPPED when the context's task was cancelled or expired: the launch must not happen. */
enum { PK_GATE_OPEN = 0, PK_GATE_STOPPED = -1 };
int32_t pk_gate_before(uint64_t context, const pk_launch *launch);
void pk_gate_after(uint64_t context, const pk_launch *launch, pk_status status);

/* Ledger of the one launch function and of copies: always on, relaxed counters. */
enum {
  PK_COUNT_LAUNCH = 0,
  PK_COUNT_HOST_LAUNCH = 1,
  PK_COUNT_H2D_BYTES = 2,
  PK_COUNT_D2H_BYTES = 3,
  PK_COUNT_D2D_BYTES = 4,
  PK_COUNT_FILL = 5,
  PK_COUNTERS = 8
};
void pk_count(uint32_t counter, uint64_t amount);

/* Offered by C++ to the core: makes a device current for the calling thread, cheap when it already is. Both sides go
 * through it, so that each knows which device is current. */
pk_status pk_use_device(int32_t device);

/* Called once by C++ when the backend is chosen, before any other call above. */
void pk_core_attach(const pk_driver *driver);

#ifdef __cplusplus
}
#endif
#endif
