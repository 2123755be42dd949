// calls_stream.cpp: calls of the driver table about streams and events.
#include "sim/calls.h"
#include "sim/state.h"

namespace pygpukit::sim {

pk_status MakeStream(Device &device, int32_t priority, std::shared_ptr<SmSet> set, uint64_t *stream) {
  if (priority > 0 || priority < -5)
    return Fail(PK_ERROR_INVALID_VALUE,
                Format("stream priority %d: 0 (lowest) to -5 (most urgent)", static_cast<int>(priority)));
  auto created = device.NewStream(priority, std::move(set));
  *stream = state->streams.Add(std::make_shared<OwnedStream>(OwnedStream{&device, std::move(created)}));
  return PK_OK;
}

pk_status StreamCreate(int32_t priority, uint64_t *stream) {
  return OnDevice([&](Device &device) { return MakeStream(device, priority, nullptr, stream); });
}

pk_status StreamDestroy(uint64_t stream) {
  const Place place = Find(stream);
  if (place.status) return place.status;
  if (stream == 0) return Fail(PK_ERROR_INVALID_HANDLE, "the default stream cannot be destroyed");
  state->streams.Remove(stream);
  return PK_OK;
}

pk_status StreamQuery(uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  if (!place.stream->Idle()) return PK_ERROR_NOT_READY;
  return place.device->Fault();
}

pk_status StreamWait(uint64_t stream) {
  Place place = Find(stream);
  if (place.status) return place.status;
  if (place.stream->Captured()) return FindFree(stream).status;
  place.stream->Wait();
  return place.device->Fault();
}

pk_status EventCreate(int32_t timing, uint64_t *event) {
  return OnDevice([&](Device &device) {
    *event = state->events.Add(std::make_shared<Event>(timing != 0, &device));
    return pk_status{PK_OK};
  });
}

pk_status EventDestroy(uint64_t event) {
  pk_status status;
  if (!FindObject(state->events, event, "event", &status)) return status;
  state->events.Remove(event);
  return PK_OK;
}

pk_status StreamWaitEvent(uint64_t stream, uint64_t event) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  pk_status status;
  const auto held = FindObject(state->events, event, "event", &status);
  if (!held) return status;
  held->MakeWait(*place.stream);
  return PK_OK;
}

pk_status EventRecord(uint64_t event, uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  pk_status status;
  const auto held = FindObject(state->events, event, "event", &status);
  if (!held) return status;
  if (held->device != place.device)
    return Fail(PK_ERROR_INVALID_HANDLE, "event_record: the event was made on another device than the stream");
  held->Record(*place.stream);
  return PK_OK;
}

pk_status EventQuery(uint64_t event) {
  pk_status status;
  const auto held = FindObject(state->events, event, "event", &status);
  if (!held) return status;
  if (!held->Done()) return PK_ERROR_NOT_READY;
  return OnDevice([](Device &device) { return device.Fault(); });
}

pk_status EventWait(uint64_t event) {
  pk_status status;
  const auto held = FindObject(state->events, event, "event", &status);
  if (!held) return status;
  held->Wait();
  return OnDevice([](Device &device) { return device.Fault(); });
}

pk_status EventElapsed(uint64_t start, uint64_t end, double *milliseconds) {
  uint64_t times[2];
  for (int i = 0; i < 2; ++i) {
    pk_status status;
    const auto event = FindObject(state->events, i ? end : start, "event", &status);
    if (!event) return status;
    if (!event->timing) return Fail(PK_ERROR_INVALID_HANDLE, "event_elapsed: the event was made without timing");
    const Event::Elapsed got = event->Time(&times[i]);
    if (got == Event::Elapsed::kNotRecorded)
      return Fail(PK_ERROR_INVALID_HANDLE, "event_elapsed: the event was never recorded");
    if (got == Event::Elapsed::kNotReady) return PK_ERROR_NOT_READY;
  }
  *milliseconds = static_cast<double>(static_cast<int64_t>(times[1] - times[0])) * 1e-6;
  return PK_OK;
}

}  // namespace pygpukit::sim
