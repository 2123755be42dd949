// busy.cpp: stretches of work between two events each, resolved once the device has passed them.
#include "launch/busy.h"

#include <pthread.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "launch/ordered.h"
#include "launch/spans.h"

namespace pk {

// A shorter pause of the host does not end a stretch. One query costs 0.25 us, two events 2.2.
static constexpr uint64_t kPauseNs = 50'000;
static constexpr uint64_t kLongestUnmarked = 1024;  // works
static constexpr size_t kMaxPending = 4096;         // stretches; what comes then is not timed
static constexpr size_t kMaxPendingTraced = 65536;
// Times between events are float32 milliseconds: within a second they are exact to a tenth of a microsecond.
static constexpr double kAnchorNs = 1e9;

class Busy {
 public:
  std::shared_ptr<Busy> outer;
  std::map<int32_t, Spans> devices;
  uint64_t launches = 0;
  uint64_t unresolved = 0;  // stretches
  bool ended = false, cut = false;
  size_t capacity = 0;  // works to keep
  size_t kept = 0;
  Trace trace{};

  void keep(const TracedWork &work) {
    if (capacity == 0) return;
    if (kept == capacity) {
      ++trace.untimed;
      return;
    }
    ++kept;
    trace.works.push_back(work);
  }
};

std::atomic<bool> g_timed{false};
std::atomic<bool> g_traced{false};

namespace {

Timing g_mode = Timing::kStretches;
bool g_failed = false;  // the device did, in this period
size_t g_tracing = 0;   // open periods that are traced

struct Stretch {
  int32_t device;
  uint64_t stream;
  bool foreign = false;
  bool open = false;
  uint64_t begin = 0, end = 0;           // events, while it is open
  uint64_t works = 0, marked_works = 0;  // so far, and up to the end event
  uint64_t launches = 0, marked_launches = 0;
  uint64_t next_mark = 0;  // after so many works
  uint64_t usual = 0;      // works of the last stretch whose end was not marked
  uint64_t last_ns = 0;    // when the host last launched, on its own clock
  std::shared_ptr<Busy> period;
};

// One that is over for the host.
struct Closed {
  int32_t device;
  uint64_t begin, end, launches;
  std::shared_ptr<Busy> period;
  pk_event record{};  // of a traced period
};

// Events of one device, and a place on its time line that others are measured from.
struct Ruler {
  std::vector<uint64_t> free;
  uint64_t anchor = 0;
  double anchor_ns = 0;
  bool aligned = false;
  double host_ns = 0;  // of the clock of records, at 0 of this time line
};

// Never destroyed: threads may outlive static destruction.
auto &g_stretches = *new std::vector<std::unique_ptr<Stretch>>;
auto &g_foreign = *new std::vector<uint64_t>;
auto &g_closed = *new std::deque<Closed>;
auto &g_rulers = *new std::map<int32_t, Ruler>;
auto &g_top = *new std::shared_ptr<Busy>;  // the innermost period
Stretch *g_last = nullptr;
Closed *g_untold = nullptr;  // the work that was just issued, until its record comes
bool g_in_graph = false;     // records that come are of one work

class OnDevice {
 public:
  explicit OnDevice(int32_t device) : before_(t_state.device_bound) { ok_ = pk_use_device(device) == PK_OK; }
  ~OnDevice() {
    if (before_ >= 0) pk_use_device(before_);
  }
  bool ok() const { return ok_; }

 private:
  int32_t before_;
  bool ok_;
};

void set_timed() { g_timed = g_top != nullptr && (g_mode != Timing::kOff || g_tracing > 0) && !g_failed; }

template <typename Do>
void each_period(const std::shared_ptr<Busy> &inner, const Do &act) {
  for (Busy *period = inner.get(); period != nullptr; period = period->outer.get()) act(*period);
}

// After a failure of the device. Nothing is timed until the next outermost period; events may be lost with the device.
void give_up() {
  g_failed = true;
  for (const auto &stretch : g_stretches) {
    if (!stretch->open) continue;
    each_period(stretch->period, [](Busy &period) { --period.unresolved; });
    g_driver->event_destroy(stretch->begin);
    g_driver->event_destroy(stretch->end);
    stretch->open = false;
  }
  for (const Closed &closed : g_closed) {
    each_period(closed.period, [](Busy &period) { --period.unresolved; });
    g_driver->event_destroy(closed.begin);
    g_driver->event_destroy(closed.end);
  }
  g_closed.clear();
  g_untold = nullptr;
  for (auto &[device, ruler] : g_rulers) {
    for (const uint64_t event : ruler.free) g_driver->event_destroy(event);
    if (ruler.anchor != 0) g_driver->event_destroy(ruler.anchor);
  }
  g_rulers.clear();
  set_timed();
}

bool take_event(Ruler &ruler, uint64_t *event) {
  if (ruler.free.empty()) return g_driver->event_create(1, event) == PK_OK;
  *event = ruler.free.back();
  ruler.free.pop_back();
  return true;
}

enum class Passed { kYes, kNotYet, kFailed };

// Where a stretch lies on the time line of its device.
Passed resolve(const Closed &closed) {
  const OnDevice device(closed.device);
  if (!device.ok()) return Passed::kFailed;
  const pk_status status = g_driver->event_query(closed.end);
  if (status == PK_ERROR_NOT_READY) return Passed::kNotYet;
  Ruler &ruler = g_rulers[closed.device];
  const bool first = ruler.anchor == 0;
  double from_ms = 0, took_ms = 0;
  if (status != PK_OK || g_driver->event_elapsed(closed.begin, closed.end, &took_ms) != PK_OK ||
      (!first && g_driver->event_elapsed(ruler.anchor, closed.begin, &from_ms) != PK_OK))
    return Passed::kFailed;
  const double from_ns = ruler.anchor_ns + from_ms * 1e6, to_ns = from_ns + took_ms * 1e6;
  each_period(closed.period, [&](Busy &period) {
    if (!period.devices[closed.device].add(from_ns, to_ns)) period.cut = true;
    period.launches += closed.launches;
    --period.unresolved;
    const auto host = [&](double at_ns) { return static_cast<uint64_t>(std::max(at_ns + ruler.host_ns, 0.0)); };
    period.keep({closed.record, host(from_ns), host(to_ns), closed.launches});
  });
  ruler.free.push_back(closed.begin);
  if (first || to_ns - ruler.anchor_ns > kAnchorNs) {
    if (!first) ruler.free.push_back(ruler.anchor);
    ruler.anchor = closed.end;
    ruler.anchor_ns = to_ns;
  } else {
    ruler.free.push_back(closed.end);
  }
  return Passed::kYes;
}

// At most so many, in the order in which they ended for the host. What one waits for may keep others waiting.
void resolve_oldest(size_t limit) {
  g_untold = nullptr;
  for (; limit > 0 && !g_closed.empty(); --limit) {
    const Passed passed = resolve(g_closed.front());
    if (passed == Passed::kFailed) return give_up();
    if (passed == Passed::kNotYet) return;
    g_closed.pop_front();
  }
}

void resolve_all() {
  g_untold = nullptr;
  for (auto closed = g_closed.begin(); closed != g_closed.end();) {
    const Passed passed = resolve(*closed);
    if (passed == Passed::kFailed) return give_up();
    closed = passed == Passed::kYes ? g_closed.erase(closed) : closed + 1;
  }
}

Stretch &find_slow(uint64_t stream) {
  for (const auto &stretch : g_stretches) {
    if (stretch->stream == stream && stretch->device == t_state.device) return *(g_last = stretch.get());
  }
  g_stretches.push_back(std::make_unique<Stretch>());
  g_last = g_stretches.back().get();
  g_last->device = t_state.device;
  g_last->stream = stream;
  for (const uint64_t foreign : g_foreign) g_last->foreign |= foreign == stream;
  return *g_last;
}

inline Stretch &find(uint64_t stream) {
  return g_last != nullptr && g_last->stream == stream && g_last->device == t_state.device ? *g_last
                                                                                           : find_slow(stream);
}

// The stretch ends after what was issued so far, unless more comes.
void mark(Stretch &stretch) {
  if (g_driver->event_record(stretch.end, stretch.stream) != PK_OK) return give_up();
  stretch.marked_works = stretch.works;
  stretch.marked_launches = stretch.launches;
}

// As mark(), but not where the stream may have run dry long ago, nor where an event would wait for a task's turn.
void mark_now(Stretch &stretch) {
  if (!stretch.open || stretch.marked_works == stretch.works) return;
  const OnDevice device(stretch.device);
  if (!device.ok()) return give_up();
  if (has_deferred() && pk_gate_has_deferred(stretch.device, stretch.stream)) return;
  if (pk_now_ns() - stretch.last_ns >= kPauseNs) {
    const pk_status status = g_driver->stream_query(stretch.stream);
    if (status == PK_OK) return;
    if (status != PK_ERROR_NOT_READY) return give_up();
  }
  mark(stretch);
}

// Ends a stretch at its last mark. Works after it are not timed; the next stretch may well be as long.
void close(Stretch &stretch) {
  if (!stretch.open) return;
  stretch.open = false;
  if (stretch.marked_works < stretch.works) stretch.usual = stretch.works;
  Closed closed{stretch.device, stretch.begin, stretch.end, stretch.marked_launches, std::move(stretch.period)};
  if (stretch.marked_works > 0) {
    g_closed.push_back(std::move(closed));
    g_untold = &g_closed.back();
    return;
  }
  each_period(closed.period, [](Busy &period) { --period.unresolved; });
  std::vector<uint64_t> &free = g_rulers[closed.device].free;
  free.insert(free.end(), {closed.begin, closed.end});
}

// Finds where 0 of a device's time line lies on the clock of records: the host waits for all that the device has.
void align(int32_t on) {
  const OnDevice device(on);
  uint64_t event;
  if (!device.ok() || !take_event(g_rulers[on], &event)) return give_up();
  Ruler &ruler = g_rulers[on];
  double from_ms = 0;
  const bool passed = g_driver->event_record(event, 0) == PK_OK && g_driver->event_wait(event) == PK_OK;
  const auto now_ns = static_cast<double>(pk_now_ns());
  if (!passed || (ruler.anchor != 0 && g_driver->event_elapsed(ruler.anchor, event, &from_ms) != PK_OK)) {
    g_driver->event_destroy(event);
    return give_up();
  }
  ruler.aligned = true;
  ruler.host_ns = now_ns - (ruler.anchor_ns + from_ms * 1e6);
  if (ruler.anchor == 0) {
    ruler.anchor = event;
  } else {
    ruler.free.push_back(event);
  }
}

void open(Stretch &stretch) {
  resolve_oldest(2);
  const size_t limit = g_tracing > 0 ? kMaxPendingTraced : kMaxPending;
  if (g_closed.size() >= limit) resolve_all();
  if (!timed() || g_closed.size() >= limit) return;
  if (g_tracing > 0 && !g_rulers[stretch.device].aligned) align(stretch.device);
  if (!timed()) return;
  Ruler &ruler = g_rulers[stretch.device];
  if (!take_event(ruler, &stretch.begin)) return give_up();
  if (!take_event(ruler, &stretch.end)) {
    ruler.free.push_back(stretch.begin);
    return give_up();
  }
  stretch.open = true;
  stretch.period = g_top;
  each_period(g_top, [](Busy &period) { ++period.unresolved; });
  stretch.works = stretch.marked_works = stretch.launches = stretch.marked_launches = 0;
  stretch.next_mark = 1;
  if (g_driver->event_record(stretch.begin, stretch.stream) != PK_OK) give_up();
}

void close_all() {
  for (size_t i = 0; i < g_stretches.size(); ++i) {
    mark_now(*g_stretches[i]);
    close(*g_stretches[i]);
  }
}

}  // namespace

Timing timing() { return g_mode; }

void set_timing(Timing mode) {
  if (!forked()) close_all();
  g_mode = mode;
  if (!forked()) set_timed();
}

std::shared_ptr<Busy> busy_begin(size_t traced) {
  // A forked process has the parent's events, which it can neither use nor destroy.
  static const int once = pthread_atfork(nullptr, nullptr, [] { g_timed = g_traced = false; });
  static_cast<void>(once);
  auto period = std::make_shared<Busy>();
  if (forked()) return period;
  close_all();
  if (g_top == nullptr) g_failed = false;
  period->outer = g_top;
  g_top = period;
  period->capacity = traced;
  g_tracing += traced > 0;
  g_traced = g_tracing > 0;
  set_timed();
  if (traced > 0 && t_state.device_bound >= 0) align(t_state.device_bound);
  return period;
}

void busy_end(Busy &period) {
  if (period.ended) return;
  period.ended = true;
  if (forked()) return;
  close_all();
  g_tracing -= period.capacity > 0;
  g_traced = g_tracing > 0;
  while (g_top != nullptr && g_top->ended) g_top = g_top->outer;
  set_timed();
}

BusyReading busy_read(Busy &period) {
  if (forked()) return {0, 0, false, false};
  resolve_all();
  double ns = 0;
  for (const auto &[device, spans] : period.devices) ns += spans.total();
  return {static_cast<uint64_t>(ns + 0.5), period.launches, !period.ended || period.unresolved > 0, period.cut};
}

Trace busy_take(Busy &period) {
  if (!forked()) resolve_all();
  return {std::exchange(period.trace.works, {}), period.trace.untimed};
}

static void count_untimed() {
  each_period(g_top, [](Busy &period) { period.trace.untimed += period.capacity > 0; });
}

void trace_issued(const pk_event &record) {
  if (g_untold != nullptr) {
    g_untold->record = record;
    g_untold = nullptr;
  } else if (!g_in_graph) {
    count_untimed();
  }
}

void trace_graph(bool begins) {
  if (begins && g_untold == nullptr) count_untimed();
  g_in_graph = begins;
}

void trace_host(const pk_event &record, uint64_t begin_ns) {
  const TracedWork work{record, begin_ns, pk_now_ns(), 1};
  each_period(g_top, [&](Busy &period) { period.keep(work); });
}

void busy_before(uint64_t stream, uint64_t now_ns) {
  Stretch &stretch = find(stream);
  if (stretch.foreign) return;
  const uint64_t paused_ns = now_ns - stretch.last_ns;
  stretch.last_ns = now_ns;
  if (stretch.open) {
    if (paused_ns < kPauseNs) return;
    const pk_status status = g_driver->stream_query(stream);
    if (status == PK_ERROR_NOT_READY) return;
    if (status != PK_OK) return give_up();
    close(stretch);
  }
  open(stretch);
}

void busy_after(uint64_t stream, uint64_t launches) {
  Stretch &stretch = find(stream);
  if (!stretch.open) return;
  stretch.launches += launches;
  if (++stretch.works < stretch.next_mark && stretch.works != stretch.usual) return;
  if (stretch.works == stretch.next_mark) stretch.next_mark += std::min(3 * stretch.works, kLongestUnmarked);
  mark(stretch);
  if (g_mode == Timing::kEach || g_tracing > 0) close(stretch);
}

void busy_mark_slow(uint64_t stream) {
  for (size_t i = 0; i < g_stretches.size() && timed(); ++i) {
    Stretch &stretch = *g_stretches[i];
    if (stream == PK_ANY_STREAM || (stretch.stream == stream && stretch.device == t_state.device)) mark_now(stretch);
  }
}

void busy_rest(uint64_t stream) {
  if (!timed()) return;
  Stretch &stretch = find(stream);
  mark_now(stretch);
  close(stretch);
}

void busy_foreign(uint64_t stream) { g_foreign.push_back(stream); }

void busy_forget(uint64_t stream) {
  if (forked()) return;
  std::erase(g_foreign, stream);
  g_last = nullptr;
  for (size_t i = 0; i < g_stretches.size(); ++i) {
    if (g_stretches[i]->stream != stream) continue;
    mark_now(*g_stretches[i]);
    close(*g_stretches[i]);
  }
  std::erase_if(g_stretches, [stream](const auto &stretch) { return stretch->stream == stream; });
}

}  // namespace pk
