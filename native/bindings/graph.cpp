// graph.cpp: capturing a stream, keeping what its launches use, launching the result.
#include "bindings/graph.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "bindings/array.h"
#include "bindings/errors.h"
#include "launch/launch.h"

namespace py = pybind11;

namespace pk {

static auto *g_let_go = new std::vector<std::pair<uint64_t, uint64_t>>;  // (pool, block); under the GIL

static void check(pk_status status, const char *doing) {
  if (status == PK_OK) return;
  raise_driver_error(status, doing);
  throw py::error_already_set();
}

static void need(bool ok) {
  if (!ok) throw py::error_already_set();
}

void give_back(uint64_t pool, uint64_t block) {
  if (capturing()) {
    g_let_go->emplace_back(pool, block);
  } else {
    pk_pool_free(pool, block);
  }
}

static void end_capture(Capture *capture) {
  std::erase(g_captures, capture);
  if (!g_captures.empty()) return;
  const auto blocks = std::exchange(*g_let_go, {});
  for (const auto &[pool, block] : blocks) pk_pool_free(pool, block);
}

Graph::~Graph() {
  if (handle == 0 && std::find(g_captures.begin(), g_captures.end(), this) != g_captures.end()) {
    uint64_t unfinished = 0;
    if (bind_device() == PK_OK && g_driver->capture_end(stream, &unfinished) == PK_OK) {
      g_driver->graph_destroy(unfinished);
    }
    end_capture(this);
  }
  if (handle != 0 && bind_device() == PK_OK) g_driver->graph_destroy(handle);
  for (const py::object &object : kept) {
    if (is_array(object.ptr())) unpin(as_array(object.ptr()));
  }
}

bool keep_captured(uint64_t stream, PyObject *launcher, PyObject *const *arguments, size_t count) {
  auto *graph = static_cast<Graph *>(capture_of(stream));
  if (graph == nullptr) return true;
  graph->kept.push_back(py::reinterpret_borrow<py::object>(launcher));
  for (size_t i = 0; i < count; ++i) {
    if (!is_array(arguments[i])) continue;
    if (!pin(as_array(arguments[i]), stream, pk_now_ns())) return false;
    graph->kept.push_back(py::reinterpret_borrow<py::object>(arguments[i]));
  }
  return true;
}

bool refuse_captured(uint64_t stream, const char *doing) {
  if (!capturing() || capture_of(stream) == nullptr) return true;
  raise_named("GPUError", std::string(doing) +
                              " while its stream is captured is not possible: a captured stream takes "
                              "kernel launches only; do it before or after `with stream.capture()`");
  return false;
}

bool refuse_capturing(const char *doing) {
  if (!capturing()) return true;
  raise_named("GPUError", std::string(doing) + " while a stream is captured is not possible; end the capture first");
  return false;
}

static std::shared_ptr<Graph> capture_begin(const py::object &stream) {
  need(ensure_backend());
  const StreamRef ref = stream_or_current(stream.ptr());
  if (ref.handle == 0) {
    raise_named("GPUError", "the default stream cannot be captured; make one: stream = gp.Stream()");
    throw py::error_already_set();
  }
  need(refuse_captured(ref.handle, "beginning a capture"));
  auto graph = std::make_shared<Graph>();
  check(g_driver->capture_begin(ref.handle), "capturing a stream");
  graph->stream = ref.handle;
  graph->source = stream;
  graph->device = t_state.device;
  g_captures.push_back(graph.get());
  return graph;
}

static void finish(Graph &graph) {
  if (graph.handle != 0) throw py::value_error("the capture has ended already");
  need(ensure_backend());
  const pk_status status = g_driver->capture_end(graph.stream, &graph.handle);
  end_capture(&graph);
  graph.source = py::none();
  check(status, "ending a capture");
}

static void launch_on(Graph &graph, const py::object &stream) {
  if (graph.handle == 0) {
    raise_named("GPUError", "the graph cannot be launched: its capture has not ended well");
    throw py::error_already_set();
  }
  need(ensure_backend());
  if (t_state.device != graph.device) {
    raise_named("DeviceMismatchError", "the graph was captured on device " + std::to_string(graph.device) +
                                           ", the current device is " + std::to_string(t_state.device));
    throw py::error_already_set();
  }
  const StreamRef ref = stream_or_current(stream.ptr());
  need(refuse_captured(ref.handle, "launching a graph"));
  Pins pins;  // tells the pool which stream uses the arrays
  for (const py::object &object : graph.kept) {
    if (is_array(object.ptr())) need(pins.add(as_array(object.ptr()), ref.handle));
  }
  check(launch_graph(graph.handle, graph, ref.handle, ref.id), "launching a graph");
}

void bind_graphs(py::module_ &m) {
  py::class_<Graph, std::shared_ptr<Graph>>(m, "Graph", "Launches captured from a stream.")
      .def_property_readonly("launches", [](const Graph &self) { return self.records.size(); })
      .def("finish", finish, "End the capture; the graph can be launched afterwards.")
      .def("launch", launch_on, py::arg("stream") = py::none());
  m.def("capture_begin", capture_begin, py::arg("stream"));
}

}  // namespace pk
