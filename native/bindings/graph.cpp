// graph.cpp: capturing a stream step by step, making graphs of the device from the steps, launching them.
//
// While a stream is captured nothing of its work reaches the device, so that memory can be had and given back as usual.
// The steps are kept: they can be run one by one, and given other arguments.
#include "bindings/graph.h"

#include <algorithm>
#include <set>
#include <string>

#include "bindings/array.h"
#include "bindings/demand.h"
#include "bindings/errors.h"
#include "bindings/wait.h"
#include "launch/launch.h"
#include "launch/submit.h"
#include "launch/ticket.h"

namespace py = pybind11;

namespace pk {

std::vector<Capture *> g_captures;

[[noreturn]] static void refuse(const char *kind, const std::string &why) {
  raise_named(kind, why);
  throw py::error_already_set();
}

// ---- steps ----

Step::~Step() {
  for (const py::object &array : arrays) unpin(as_array(array.ptr()));
}

bool Step::keep(PyObject *array, uint64_t stream) {
  if (!pin(as_array(array), stream, pk_now_ns())) return false;
  arrays.push_back(py::reinterpret_borrow<py::object>(array));
  return true;
}

void Step::let_go(PyObject *array) {
  const auto kept_array =
      std::find_if(arrays.begin(), arrays.end(), [&](const auto &kept) { return kept.ptr() == array; });
  if (kept_array == arrays.end()) return;
  unpin(as_array(array));
  arrays.erase(kept_array);
}

int Step::set(PyObject *, PyObject *, uint64_t) { return 0; }

void add_step(uint64_t stream, std::unique_ptr<Step> step) {
  static_cast<Graph *>(capture_of(stream))->steps.push_back(std::move(step));
}

bool refuse_captured(uint64_t stream, const char *doing) {
  if (!capturing() || capture_of(stream) == nullptr) return true;
  raise_named("GPUError", std::string(doing) +
                              " while its stream is captured is not possible: nothing of it has run; do it before or "
                              "after `with stream.capture()`");
  return false;
}

bool refuse_capturing(const char *doing) {
  if (!capturing()) return true;
  raise_named("GPUError", std::string(doing) + " while a stream is captured is not possible; end the capture first");
  return false;
}

// ---- the graph ----

Graph::~Graph() {
  std::erase(g_captures, this);
  drop();
}

void Graph::drop() {
  if (bind_device() == PK_OK)
    for (const Segment &segment : segments_)
      if (segment.handle != 0) g_driver->graph_destroy(segment.handle);
  segments_.clear();
  built_ = false;
}

void Graph::finish() {
  if (finished_) throw py::value_error("the capture has ended already");
  std::erase(g_captures, this);
  finished_ = true;
  source = py::none();
  need(ensure_backend());
  // Memory that was made meanwhile may still be in use by what ran on the stream before.
  need(wait_stream(stream, "ending a capture"));
  build();
}

uint64_t Graph::captured(uint64_t on, size_t first, size_t last) const {
  const char *doing = "making a graph of what was captured";
  check(g_driver->capture_begin(on), doing);
  pk_status status = PK_OK;
  for (size_t i = first; i < last && status == PK_OK; ++i) status = steps[i]->issue(on);
  uint64_t handle = 0;
  const pk_status ended = g_driver->capture_end(on, &handle);
  if (status != PK_OK && ended == PK_OK) g_driver->graph_destroy(handle);
  check(status != PK_OK ? status : ended, doing);
  return handle;
}

void Graph::build() {
  drop();
  auto own = std::make_unique<Stream>(0, space_here());
  for (size_t first = 0; first < steps.size();) {
    size_t last = first + 1;
    const bool each_time = steps[first]->each_time();
    while (!each_time && last < steps.size() && !steps[last]->each_time()) ++last;
    segments_.push_back({each_time ? 0 : captured(own->handle, first, last), first, last});
    first = last;
  }
  if (own->keeper != nullptr) creator_ = std::move(own);
  built_ = true;
}

StreamRef Graph::ready(const py::object &on) const {
  if (!finished_) refuse("GPUError", "the graph cannot be launched: its capture has not ended");
  need(ensure_backend());
  if (t_state.device != device)
    refuse("DeviceMismatchError", "the graph was captured on device " + std::to_string(device) +
                                      ", the current device is " + std::to_string(t_state.device));
  const StreamRef ref = stream_or_current(on.ptr());
  need(refuse_captured(ref.handle, "launching a graph"));
  return ref;
}

// A step that no graph of the device holds. A function on the host is done when this returns.
static pk_status issue_by_itself(Step &step, uint64_t stream) {
  if (step.is_launch()) return step.issue(stream);
  if (const pk_status refused = enter()) return refused;
  return with_ticket(stream, [&] { return step.issue(stream); });
}

void Graph::launch(const py::object &on) {
  const StreamRef ref = ready(on);
  if (!built_) build();
  static const uint32_t name = pk_intern("graph", 5);
  Pins pins;  // tells the pool which stream uses the arrays
  for (const auto &step : steps)
    for (const py::object &array : step->arrays) need(pins.add(as_array(array.ptr()), ref.handle));
  for (const Segment &segment : segments_) {
    const pk_status status =
        segment.handle != 0
            ? paced(
                  ref.handle, PK_WORK_KERNEL, name, segment.handle,
                  [graph = segment.handle, stream = ref.handle] { return g_raw_driver->graph_launch(graph, stream); },
                  launches(segment.first, segment.last))
            : issue_by_itself(*steps[segment.first], ref.handle);
    check(status, "launching a graph");
    const bool traced = tracing() && segment.handle != 0;
    if (traced) trace_graph(true);
    for (size_t i = segment.first; i < segment.last; ++i) steps[i]->count(ref.id);
    if (traced) trace_graph(false);
  }
}

// Each step by itself, as it would have run without a capture.
void Graph::run(const py::object &on) {
  const StreamRef ref = ready(on);
  Pins pins;
  for (const auto &step : steps)
    for (const py::object &array : step->arrays) need(pins.add(as_array(array.ptr()), ref.handle));
  for (const auto &step : steps) {
    const auto issue = [&] { return step->issue(ref.handle); };
    const auto entered = [&] {
      const pk_status refused = step->is_launch() ? PK_OK : enter();
      return refused == PK_OK ? issue() : refused;
    };
    check(step->each_time() ? entered() : at_once(ref.handle, step->is_launch(), issue), "running a step of a graph");
    step->count(ref.id);
  }
}

int64_t Graph::set(const py::str &name, const py::object &value) {
  if (!finished_) refuse("GPUError", "the graph cannot be updated: its capture has not ended");
  need(ensure_backend());
  int64_t changed = 0;
  for (const auto &step : steps) {
    const int done = step->set(name.ptr(), value.ptr(), stream);
    need(done >= 0);
    changed += done;
  }
  if (changed > 0) drop();  // made again at the next launch
  return changed;
}

size_t Graph::launches(size_t first, size_t last) const {
  return static_cast<size_t>(std::count_if(steps.begin() + static_cast<std::ptrdiff_t>(first),
                                           steps.begin() + static_cast<std::ptrdiff_t>(last),
                                           [](const auto &step) { return step->is_launch(); }));
}

static std::shared_ptr<Graph> capture_begin(const py::object &stream) {
  need(ensure_backend());
  const StreamRef ref = stream_or_current(stream.ptr());
  if (ref.handle == 0) refuse("GPUError", "the default stream cannot be captured; make one: stream = gp.Stream()");
  need(refuse_captured(ref.handle, "beginning a capture"));
  auto graph = std::make_shared<Graph>();
  graph->stream = ref.handle;
  graph->source = stream;
  graph->device = t_state.device;
  g_captures.push_back(graph.get());
  return graph;
}

// One array for each storage that the graph uses.
static py::list arrays(const Graph &graph) {
  py::list results;
  std::set<const Storage *> seen;
  for (const auto &step : graph.steps)
    for (const py::object &array : step->arrays)
      if (seen.insert(as_array(array.ptr())->storage).second) results.append(array);
  return results;
}

void bind_graphs(py::module_ &m) {
  py::class_<Graph, std::shared_ptr<Graph>>(m, "Graph", "Work captured from a stream.")
      .def_property_readonly("launches", [](const Graph &self) { return self.launches(0, self.steps.size()); })
      .def_property_readonly("steps", [](const Graph &self) { return self.steps.size(); })
      .def_property_readonly("arrays", arrays, "One array for each memory that the graph uses.")
      .def("finish", &Graph::finish, "End the capture; the graph can be launched afterwards.")
      .def("launch", &Graph::launch, py::arg("stream") = py::none())
      .def("run", &Graph::run, py::arg("stream") = py::none(), "Each step by itself, as without a capture.")
      .def("set", &Graph::set, py::arg("name"), py::arg("value"),
           "Give a parameter of that name another value in every launch that has one; returns how many.");
  m.def("capture_begin", capture_begin, py::arg("stream"));
  m.def(
      "is_capturing",
      [] {
        need(follow_session());
        return capture_of(t_state.stream) != nullptr;
      },
      "Whether the current stream is captured.");
}

}  // namespace pk
