// times.cpp: the times of work.
#include "program/times.h"

#include <deque>

#include "program/report.h"

namespace pk::program {
namespace {

struct Row {
  Described what;
  int device = 0;
  uint64_t stream = 0, begin_ns = 0, end_ns = 0;
  Place place;
};
struct Pending {
  size_t row;
  uint64_t begin, end;  // events
};
// An event of a device, and when it passed by the clock.
struct Zero {
  uint64_t event = 0, ns = 0;
};
struct Times {
  uint32_t limit = 0;
  std::vector<Row> rows;
  std::deque<Pending> pending;
  std::map<int, Zero> zeros;
  std::map<int, std::vector<uint64_t>> unused;  // events, by device
};
Times &times() {
  static Times &only = *new Times;
  return only;
}

constexpr size_t kPendingLimit = 1024;

uint64_t take_event(int device) {
  std::vector<uint64_t> &unused = times().unused[device];
  uint64_t event = 0;
  if (unused.empty()) return driver().event_create(1, &event) == PK_OK ? event : 0;
  event = unused.back();
  unused.pop_back();
  return event;
}

// The first piece of work of a device waits for an event, to know when that was.
bool has_zero(int device) {
  Zero &zero = times().zeros[device];
  if (zero.event != 0) return true;
  const uint64_t event = take_event(device);
  if (event == 0 || driver().event_record(event, 0) != PK_OK || driver().event_wait(event) != PK_OK) return false;
  zero = {event, now_ns()};
  return true;
}

// Reads the events of the oldest works: of all, or of those that are done.
void settle(bool all) {
  Times &own = times();
  for (; !own.pending.empty(); own.pending.pop_front()) {
    const Pending &first = own.pending.front();
    Row &row = own.rows[first.row];
    const pk_status status = all ? driver().event_wait(first.end) : driver().event_query(first.end);
    if (status == PK_ERROR_NOT_READY) return;
    double since_ms = 0, took_ms = 0;
    if (status == PK_OK && driver().event_elapsed(own.zeros[row.device].event, first.begin, &since_ms) == PK_OK &&
        driver().event_elapsed(first.begin, first.end, &took_ms) == PK_OK) {
      row.begin_ns = own.zeros[row.device].ns + static_cast<uint64_t>(since_ms * 1e6);
      row.end_ns = row.begin_ns + static_cast<uint64_t>(took_ms * 1e6);
      add_time(row.what.kind, row.what.name, row.end_ns - row.begin_ns);
    }
    for (const uint64_t event : {first.begin, first.end}) own.unused[row.device].push_back(event);
  }
}

}  // namespace

void keep_times(uint32_t limit) { times().limit = limit; }

Timing::Timing(const Stream &stream) : stream_(stream) {
  kept_ = times().rows.size() < times().limit;
  begin_ns_ = now_ns();
  if (state().simulated || !kept_) return;
  kept_ = has_zero(stream.device);
  if (kept_) begin_event_ = take_event(stream.device);
  kept_ = begin_event_ != 0 && driver().event_record(begin_event_, stream.handle) == PK_OK;
}

void Timing::end(Described what) {
  Times &own = times();
  const uint64_t end_ns = now_ns();
  if (state().simulated) add_time(what.kind, what.name, end_ns - begin_ns_);
  if (!kept_) return;
  own.rows.push_back({std::move(what), stream_.device, stream_.number, 0, 0, thread().place});
  if (state().simulated) {
    own.rows.back().begin_ns = begin_ns_;
    own.rows.back().end_ns = end_ns;
    return;
  }
  const uint64_t end_event = take_event(stream_.device);
  if (end_event == 0 || driver().event_record(end_event, stream_.handle) != PK_OK) return;
  own.pending.push_back({own.rows.size() - 1, begin_event_, end_event});
  if (own.pending.size() >= kPendingLimit) settle(false);
}

void settle_times() { settle(true); }

void tell_times() {
  for (const Row &row : times().rows)
    if (row.end_ns != 0)
      tell_work(row.what.kind, row.what.name, row.place,
                {static_cast<uint64_t>(row.device), row.stream, row.begin_ns, row.end_ns, row.what.blocks,
                 row.what.threads, row.what.bytes});
}

}  // namespace pk::program
