// busy.h: how long the device was busy with what was launched outside scheduling contexts, by events on its streams.
//
// A stretch is work of one stream with no long pause in it. Its time goes from an event before its first work to an
// event after its last. Where the host pauses, the stream is asked whether it ran dry; if it did, the stretch ended at
// its last mark. Marks are set before waits, at the end of a period, and after the 1st, 4th, 16th, 64th ... work: a
// loop of launches pays for hardly any. Nothing here waits, throws, or is needed for the work itself: after a failure
// of the device nothing is timed. All of it with the GIL, but for the look whether anything is timed at all.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "launch/runtime.h"

namespace pk {

// kEach: a stretch for each work. Exact to the gaps between kernels, at the price of two events a launch.
enum class Timing : int32_t { kOff, kStretches, kEach };

// Whether there is a period now, and timing is on. Launches of tasks, which are never timed, look without the GIL, too.
extern std::atomic<bool> g_timed;
inline bool timed() { return g_timed.load(std::memory_order_relaxed); }
Timing timing();
void set_timing(Timing mode);

struct BusyReading {
  uint64_t ns;        // union over the streams of a device, sum over devices
  uint64_t launches;  // those whose time is in it
  bool pending;       // work of the period runs yet, or the period has not ended
  bool cut;           // too many stretches at a time: a lower bound
};

// One work of a traced period: its record, and when it ran on the clock of records.
struct TracedWork {
  pk_event record;
  uint64_t begin_ns, end_ns;
  uint64_t launches;  // of a graph several
};
struct Trace {
  std::vector<TracedWork> works;  // in the order in which the device ended them, about
  uint64_t untimed;               // works that are not among them, so far
};

// A period of the program, such as a notebook cell. They nest: what is launched belongs to all that are open. traced:
// at most so many works are kept one by one, which times as kEach does while the period is open, and waits for the
// device once.
class Busy;
std::shared_ptr<Busy> busy_begin(size_t traced = 0);
void busy_end(Busy &period);
BusyReading busy_read(Busy &period);
Trace busy_take(Busy &period);  // the works that ended since the last call

// Whether a period is traced. For its trace, with the GIL: what the work was that was just issued, and work that the
// host did or waited for, from begin_ns until now.
extern std::atomic<bool> g_traced;
inline bool tracing() { return __builtin_expect(g_traced.load(std::memory_order_relaxed), 0); }
void trace_issued(const pk_event &record);
void trace_graph(bool begins);  // records until it ends are of the one work that was just issued
void trace_host(const pk_event &record, uint64_t begin_ns);

void busy_before(uint64_t stream, uint64_t now_ns);
void busy_after(uint64_t stream, uint64_t launches);

// Issues work for a stream of the thread's device, timed where that is wanted.
template <typename Issue>
pk_status busy(uint64_t stream, uint64_t launches, const Issue &issue) {
  if (__builtin_expect(!timed(), 1)) return issue();
  busy_before(stream, pk_now_ns());
  const pk_status status = issue();
  if (status == PK_OK) busy_after(stream, launches);
  return status;
}

// The host is about to wait: the work so far ends here. PK_ANY_STREAM: of all streams.
void busy_mark_slow(uint64_t stream);
inline void busy_mark(uint64_t stream) {
  if (__builtin_expect(timed(), 0)) busy_mark_slow(stream);
}

// What follows is no part of the stretch: the host works in the device's stead.
void busy_rest(uint64_t stream);
// A stream of another library, which may be captured behind our back: it takes no events of ours.
void busy_foreign(uint64_t stream);
void busy_forget(uint64_t stream);

}  // namespace pk
