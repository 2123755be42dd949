// ordered.h: the device as all but the gate see it: whatever touches a stream comes after what is deferred for it.
#pragma once
#include "launch/runtime.h"

namespace pk {

// The functions of the device as they are. For commands of the gate only: with them order is the caller's affair.
extern const pk_driver *g_raw_driver;

// Remembers the table and gives one with the same functions in which everything that touches a stream, or depends on
// its order, first waits until what is deferred for the stream is issued. It costs one branch when nothing is deferred.
const pk_driver *order_driver(const pk_driver *raw);

extern const uint64_t *g_deferred;  // pk_gate_deferred()
inline bool has_deferred() { return __builtin_expect(__atomic_load_n(g_deferred, __ATOMIC_ACQUIRE) != 0, 0); }

// Waits until what is deferred for a stream is issued. Else than PK_OK: one of its commands was refused.
pk_status settle_slow(uint64_t stream);
inline pk_status settle(uint64_t stream) { return has_deferred() ? settle_slow(stream) : PK_OK; }

// Whether this process was forked by one that had opened the device: it has none of the threads, and no device.
bool forked();

}  // namespace pk
