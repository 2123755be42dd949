// stream.cpp: streams that run everything at once, and events with the host's clock.
#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "mock.h"

namespace mock {

namespace {

struct Event {
  bool timing;
  bool recorded;
  std::chrono::steady_clock::time_point time;
};

std::mutex g_mutex;
std::set<Handle> g_streams, g_captured;
std::map<Handle, Event> g_events;
Handle g_next = 0x5000;

// 0 for the default stream and for streams that exist.
Result known_stream(Handle stream) {
  MOCK_CONTEXT();
  return stream == 0 || g_streams.count(stream) != 0 ? 0 : 400;
}

Result known_event(Handle event) { return g_events.count(event) != 0 ? 0 : 400; }

}  // namespace

Result cuStreamCreateWithPriority(Handle *stream, uint32_t flags, int32_t priority) {
  MOCK_CALL(cuStreamCreateWithPriority, "flags %u priority %d", flags, priority);
  MOCK_CONTEXT();
  std::lock_guard<std::mutex> lock(g_mutex);
  *stream = ++g_next;
  g_streams.insert(*stream);
  return 0;
}

Result cuStreamDestroy(Handle stream) {
  MOCK_CALL(cuStreamDestroy, "%lu", stream);
  std::lock_guard<std::mutex> lock(g_mutex);
  return g_streams.erase(stream) == 1 ? 0 : 400;
}

// Launches during a capture are logged like others; graphs know nothing of them.
Result cuStreamBeginCapture(Handle stream, int32_t mode) {
  MOCK_CALL(cuStreamBeginCapture, "%lu mode %d", stream, mode);
  std::lock_guard<std::mutex> lock(g_mutex);
  if (stream == 0 || g_captured.count(stream) != 0) return 900;
  if (Result unknown = known_stream(stream)) return unknown;
  g_captured.insert(stream);
  return 0;
}

Result cuStreamEndCapture(Handle stream, Handle *graph) {
  MOCK_CALL(cuStreamEndCapture, "%lu", stream);
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_captured.erase(stream) != 1) return 1;
  *graph = ++g_next;
  return 0;
}

Result cuGraphInstantiateWithFlags(Handle *executable, Handle graph, uint64_t flags) {
  MOCK_CALL(cuGraphInstantiateWithFlags, "%lu flags %lu", graph, flags);
  std::lock_guard<std::mutex> lock(g_mutex);
  *executable = ++g_next;
  return 0;
}

Result cuGraphLaunch(Handle executable, Handle stream) {
  MOCK_CALL(cuGraphLaunch, "%lu stream %lu", executable, stream);
  std::lock_guard<std::mutex> lock(g_mutex);
  return known_stream(stream);
}

Result cuGraphExecDestroy(Handle executable) {
  MOCK_CALL(cuGraphExecDestroy, "%lu", executable);
  return 0;
}

Result cuGraphDestroy(Handle graph) {
  MOCK_CALL(cuGraphDestroy, "%lu", graph);
  return 0;
}

Result cuStreamQuery(Handle stream) {
  MOCK_CALL(cuStreamQuery, "%lu", stream);
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_captured.count(stream) != 0) return 900;
  return known_stream(stream);
}

Result cuStreamSynchronize(Handle stream) {
  MOCK_CALL(cuStreamSynchronize, "%lu", stream);
  std::lock_guard<std::mutex> lock(g_mutex);
  return known_stream(stream);
}

Result cuStreamWaitEvent(Handle stream, Handle event, uint32_t flags) {
  MOCK_CALL(cuStreamWaitEvent, "%lu event %lu flags %u", stream, event, flags);
  std::lock_guard<std::mutex> lock(g_mutex);
  return known_event(event) != 0 ? 400 : known_stream(stream);
}

Result cuEventCreate(Handle *event, uint32_t flags) {
  MOCK_CALL(cuEventCreate, "flags %u", flags);
  MOCK_CONTEXT();
  std::lock_guard<std::mutex> lock(g_mutex);
  *event = ++g_next;
  g_events[*event] = {(flags & pk::cuda::kEventDisableTiming) == 0, false, {}};
  return 0;
}

Result cuEventDestroy(Handle event) {
  MOCK_CALL(cuEventDestroy, "%lu", event);
  std::lock_guard<std::mutex> lock(g_mutex);
  return g_events.erase(event) == 1 ? 0 : 400;
}

Result cuEventRecord(Handle event, Handle stream) {
  MOCK_CALL(cuEventRecord, "%lu stream %lu", event, stream);
  std::lock_guard<std::mutex> lock(g_mutex);
  if (known_event(event) != 0) return 400;
  g_events[event].recorded = true;
  g_events[event].time = std::chrono::steady_clock::now();
  return known_stream(stream);
}

Result cuEventQuery(Handle event) {
  MOCK_CALL(cuEventQuery, "%lu", event);
  std::lock_guard<std::mutex> lock(g_mutex);
  return known_event(event);
}

Result cuEventSynchronize(Handle event) {
  MOCK_CALL(cuEventSynchronize, "%lu", event);
  std::lock_guard<std::mutex> lock(g_mutex);
  return known_event(event);
}

Result cuEventElapsedTime(float *milliseconds, Handle start, Handle end) {
  MOCK_CALL(cuEventElapsedTime, "%lu to %lu", start, end);
  std::lock_guard<std::mutex> lock(g_mutex);
  if (known_event(start) != 0 || known_event(end) != 0) return 400;
  const Event &from = g_events[start], &to = g_events[end];
  if (!from.timing || !to.timing || !from.recorded || !to.recorded) return 400;
  *milliseconds = std::chrono::duration<float, std::milli>(to.time - from.time).count();
  return 0;
}

}  // namespace mock
