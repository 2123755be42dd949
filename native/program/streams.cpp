// streams.cpp: streams, events, and functions of the host in their order.
#include "program/streams.h"

#include <cstdio>

#include "program/allocations.h"
#include "program/graphs.h"
#include "program/report.h"
#include "sim/sim.h"

namespace pk::program {
namespace {

struct Event {
  uint64_t handle = 0;  // the driver's, on a real device
  unsigned flags = 0;
  bool recorded = false;
  uint64_t passed_ns = 0;          // on the simulation
  std::shared_ptr<Graph> capture;  // recorded in one, after these
  std::vector<Node *> last;
};

struct Streams {
  std::map<cudaStream_t, std::unique_ptr<Stream>> created;
  std::map<int, Stream> legacy;  // by device
  std::map<cudaEvent_t, std::unique_ptr<Event>> events;
  uint64_t next = 0x100;  // handles: no small number, which are names of default streams
  uint64_t count = 0;
};
Streams &streams() {
  static Streams &only = *new Streams;
  return only;
}

Stream *thread_stream() {
  static thread_local std::map<int, Stream> own;
  Stream &stream = own[thread().device];
  stream.device = thread().device;
  if (stream.number == 0) stream.number = ++streams().count;
  if (stream.handle == 0 && !state().simulated && driver().stream_create_ordered(0, &stream.handle) != PK_OK)
    return nullptr;
  return &stream;
}

Event *find_event(cudaEvent_t event) {
  const auto at = streams().events.find(event);
  return at == streams().events.end() ? nullptr : at->second.get();
}

cudaError_t no_event() { return fail(cudaErrorInvalidResourceHandle, "there is no such event, or it was destroyed"); }

}  // namespace

Stream *find_stream(cudaStream_t stream) {
  if (stream == cudaStreamPerThread || (stream == nullptr && thread().thread_streams)) return thread_stream();
  if (stream == nullptr || stream == cudaStreamLegacy) {
    Stream &legacy = streams().legacy[thread().device];
    legacy.device = thread().device;
    return &legacy;
  }
  const auto at = streams().created.find(stream);
  return at == streams().created.end() ? nullptr : at->second.get();
}

cudaError_t check_stream(cudaStream_t stream) {
  if (find_stream(stream) != nullptr) return cudaSuccess;
  return fail(cudaErrorInvalidResourceHandle, "there is no such stream, or it was destroyed");
}

cudaError_t put(cudaStream_t stream, cudaGraphNodeType type, Work work) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  Stream &on = *find_stream(stream);
  if (on.capture != nullptr) {
    Node *node = on.capture->add(type, on.last);
    node->work = std::move(work);
    on.last = {node};
    return cudaSuccess;
  }
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  return work(on);
}

cudaError_t check_not_captured(Stream &stream, const char *call) {
  if (stream.capture == nullptr) return cudaSuccess;
  return fail(cudaErrorStreamCaptureUnsupported, std::string(call) + " waits, and the stream is captured");
}

void show_output() {
  if (!state().simulated) return;  // the driver writes by itself
  char buffer[4096];
  while (const uint64_t bytes = pk_sim_take_output(buffer, sizeof buffer)) std::fwrite(buffer, 1, bytes, stdout);
}

void note_fault(pk_status status, const std::string &kernel, const Place &place) {
  if (device().fault != cudaSuccess) return;
  device().fault = error_of(status);
  std::string text = driver().error_text(status);
  if (const size_t at = text.find("address 0x"); at != std::string::npos)
    if (const std::string where = describe_address(std::strtoull(text.c_str() + at + 8, nullptr, 16)); !where.empty())
      text += ", " + where;
  tell_finding("fault", text + (kernel.empty() ? "" : "; launched here"), place);
}

cudaError_t wait_device() {
  if (const pk_status status = driver().device_wait()) note_fault(status, "", thread().place);
  show_output();
  return standing();
}

cudaError_t wait_stream(Stream &stream) {
  if (!state().simulated)
    if (const pk_status status = driver().stream_wait(stream.handle)) note_fault(status, "", thread().place);
  show_output();
  return standing();
}

void end_capture(const std::shared_ptr<Graph> &graph) {
  const auto end = [&graph](Stream &stream) {
    if (stream.capture != graph) return;
    stream.capture = nullptr;
    stream.last.clear();
    stream.origin = false;
  };
  for (auto &[handle, stream] : streams().created) end(*stream);
  if (Stream *own = thread_stream()) end(*own);
}

void forget_streams() {
  for (auto &[handle, stream] : streams().created)
    if (stream->handle != 0) driver().stream_destroy(stream->handle);
  for (auto &[handle, event] : streams().events)
    if (event->handle != 0) driver().event_destroy(event->handle);
  streams().created.clear();
  streams().events.clear();
}

// ---- streams

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  if (stream == nullptr || flags > cudaStreamNonBlocking)
    return fail(cudaErrorInvalidValue, "a stream takes cudaStreamDefault or cudaStreamNonBlocking");
  auto created = std::make_unique<Stream>();
  created->device = thread().device;
  created->flags = flags;
  created->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  if (!state().simulated) {
    const auto create = flags == cudaStreamNonBlocking ? driver().stream_create : driver().stream_create_ordered;
    if (const cudaError_t failed = check(create(created->priority, &created->handle)); failed != cudaSuccess)
      return failed;
  }
  created->number = ++streams().count;
  *stream = reinterpret_cast<cudaStream_t>(streams().next += 16);
  streams().created[*stream] = std::move(created);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto at = streams().created.find(stream);
  if (at == streams().created.end()) return fail(cudaErrorInvalidResourceHandle, "no stream that was created");
  if (at->second->handle != 0) driver().stream_destroy(at->second->handle);
  streams().created.erase(at);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  Stream &on = *find_stream(stream);
  if (const cudaError_t bad = check_not_captured(on, "cudaStreamSynchronize"); bad != cudaSuccess) return bad;
  return wait_stream(on);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  if (state().simulated) return wait_stream(*find_stream(stream));
  const pk_status status = driver().stream_query(find_stream(stream)->handle);
  return status == PK_ERROR_NOT_READY ? cudaErrorNotReady : check(status);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  Event *of = find_event(event);
  if (of == nullptr) return no_event();
  Stream &on = *find_stream(stream);
  if (of->capture != nullptr) {  // the stream joins the capture, or what was captured elsewhere joins the stream's
    if (on.capture != nullptr && on.capture != of->capture)
      return fail(cudaErrorStreamCaptureMerge, "the stream and the event are of two captures");
    on.capture = of->capture;
    on.last.insert(on.last.end(), of->last.begin(), of->last.end());
    return cudaSuccess;
  }
  if (on.capture != nullptr)
    return fail(cudaErrorStreamCaptureIsolation, "the stream is captured, and the event was recorded outside");
  if (state().simulated || !of->recorded) return cudaSuccess;
  return check(driver().stream_wait_event(on.handle, of->handle));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  *flags = find_stream(stream)->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  *priority = find_stream(stream)->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID, const cudaStreamAttrValue *) {
  return check_stream(stream);
}

cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  if (function == nullptr) return fail(cudaErrorInvalidValue, "cudaLaunchHostFunc has no function");
  return put(stream, cudaGraphNodeTypeHost, [function, data](Stream &on) {
    if (!state().simulated) return check(driver().launch_host(on.handle, function, data));
    function(data);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags) {
  if (callback == nullptr || flags != 0) return fail(cudaErrorInvalidValue, "cudaStreamAddCallback takes flags of 0");
  struct Call {
    cudaStreamCallback_t callback;
    cudaStream_t stream;
    void *data;
  };
  return put(stream, cudaGraphNodeTypeHost, [callback, stream, data](Stream &on) {
    if (state().simulated) {
      callback(stream, cudaSuccess, data);
      return cudaSuccess;
    }
    auto call = std::make_unique<Call>(Call{callback, stream, data});
    const cudaError_t failed = check(driver().launch_host(
        on.handle,
        [](void *argument) {
          const std::unique_ptr<Call> taken(static_cast<Call *>(argument));
          taken->callback(taken->stream, cudaSuccess, taken->data);
        },
        call.get()));
    if (failed == cudaSuccess) call.release();
    return failed;
  });
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  if (event == nullptr) return fail(cudaErrorInvalidValue, "cudaEventCreate has no place for the event");
  auto created = std::make_unique<Event>();
  created->flags = flags;
  if (!state().simulated) {
    const int32_t timing = (flags & cudaEventDisableTiming) == 0;
    if (const cudaError_t failed = check(driver().event_create(timing, &created->handle)); failed != cudaSuccess)
      return failed;
  }
  *event = reinterpret_cast<cudaEvent_t>(streams().next += 16);
  streams().events[*event] = std::move(created);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Event *of = find_event(event);
  if (of == nullptr) return no_event();
  if (of->handle != 0) driver().event_destroy(of->handle);
  streams().events.erase(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  if (const cudaError_t bad = check_stream(stream); bad != cudaSuccess) return bad;
  Event *of = find_event(event);
  if (of == nullptr) return no_event();
  Stream &on = *find_stream(stream);
  of->capture = on.capture;
  of->last = on.last;
  if (on.capture != nullptr) return cudaSuccess;
  of->recorded = true;
  of->passed_ns = now_ns();
  return state().simulated ? cudaSuccess : check(driver().event_record(of->handle, on.handle));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Event *of = find_event(event);
  if (of == nullptr) return no_event();
  if (state().simulated || !of->recorded) return standing();
  const pk_status status = driver().event_query(of->handle);
  return status == PK_ERROR_NOT_READY ? cudaErrorNotReady : check(status);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Event *of = find_event(event);
  if (of == nullptr) return no_event();
  if (!state().simulated && of->recorded)
    if (const pk_status status = driver().event_wait(of->handle)) note_fault(status, "", thread().place);
  show_output();
  return standing();
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Event *first = find_event(start), *second = find_event(end);
  if (first == nullptr || second == nullptr) return no_event();
  if (milliseconds == nullptr) return fail(cudaErrorInvalidValue, "cudaEventElapsedTime has no place for the time");
  if (!first->recorded || !second->recorded || ((first->flags | second->flags) & cudaEventDisableTiming) != 0)
    return fail(cudaErrorInvalidResourceHandle, "an event was not recorded, or was created without timing");
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  if (state().simulated) {
    *milliseconds =
        static_cast<float>(static_cast<double>(static_cast<int64_t>(second->passed_ns - first->passed_ns)) * 1e-6);
    return cudaSuccess;
  }
  double elapsed = 0;
  const pk_status status = driver().event_elapsed(first->handle, second->handle, &elapsed);
  *milliseconds = static_cast<float>(elapsed);
  return status == PK_ERROR_NOT_READY ? cudaErrorNotReady : check(status);
}

}  // namespace pk::program
