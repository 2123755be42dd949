// graph.h: Graph: launches captured from a stream, with everything they use.
#pragma once
#include <pybind11/pybind11.h>

#include <vector>

#include "bindings/stream.h"
#include "launch/capture.h"

namespace pk {

struct Graph : Capture {
  uint64_t handle = 0;  // 0 while it is captured
  int32_t device = 0;
  pybind11::object source;             // the stream that is captured
  std::vector<pybind11::object> kept;  // launchers, and arrays: those stay on the device as long as the graph lives

  Graph() = default;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();
};

// Called when a launch was captured: keeps the launcher and the arrays among its arguments. False with an exception
// set.
bool keep_captured(uint64_t stream, PyObject *launcher, PyObject *const *arguments, size_t count);

// Refuses what a captured stream does not take. False with GPUError set, naming what was tried.
bool refuse_captured(uint64_t stream, const char *doing);
// The same for every stream: for waits on the device.
bool refuse_capturing(const char *doing);

// A pool block that was let go: given back now, or when nothing is captured any more. Giving it back may mark a place
// in a stream, which a captured one does not take.
void give_back(uint64_t pool, uint64_t block);

void bind_graphs(pybind11::module_ &m);

}  // namespace pk
