// graph.h: Graph: work captured from a stream, step by step, with everything it uses.
#pragma once
#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "bindings/stream.h"
#include "launch/capture.h"
#include "pygpukit/driver.h"

namespace pk {

// One launch, copy or fill.
struct Step {
  std::vector<pybind11::object> arrays;  // stay on the device as long as the graph lives

  Step() = default;
  Step(const Step &) = delete;
  Step &operator=(const Step &) = delete;
  virtual ~Step();
  // Takes another array in; false with an exception set.
  bool keep(PyObject *array, uint64_t stream);
  void let_go(PyObject *array);
  // Gives the work to the device, which may be capturing the stream.
  virtual pk_status issue(uint64_t stream) = 0;
  // Writes what one run of it is counted and recorded as.
  virtual void count(uint32_t stream_id) = 0;
  virtual bool is_launch() const { return false; }
  // Work that the device cannot keep: it is issued each time.
  virtual bool each_time() const { return false; }
  // Gives a named parameter another value: 1 done, 0 there is none of that name, -1 with an exception set.
  virtual int set(PyObject *name, PyObject *value, uint64_t stream);
};

struct Graph : Capture {
  pybind11::object source;  // the stream that is captured
  int32_t device = 0;
  std::vector<std::unique_ptr<Step>> steps;

  Graph() = default;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();
  void finish();
  void launch(const pybind11::object &stream);
  void run(const pybind11::object &stream);
  int64_t set(const pybind11::str &name, const pybind11::object &value);
  size_t launches(size_t first, size_t last) const;  // among these steps

 private:
  // Steps that the device runs as one, or one that is issued each time (handle 0).
  struct Segment {
    uint64_t handle;
    size_t first, last;
  };
  StreamRef ready(const pybind11::object &stream) const;
  uint64_t captured(uint64_t on, size_t first, size_t last) const;
  void build();
  void drop();

  std::unique_ptr<Stream> creator_;  // keeps the multiprocessors that the device's graphs run on, where they are a part
  std::vector<Segment> segments_;
  bool built_ = false, finished_ = false;
};

// Adds a step to the graph that the stream is captured for. The caller made sure that there is one.
void add_step(uint64_t stream, std::unique_ptr<Step> step);

// Refuses what a captured stream does not take. False with GPUError set, naming what was tried.
bool refuse_captured(uint64_t stream, const char *doing);
// The same for every stream: for waits on the device.
bool refuse_capturing(const char *doing);

void bind_graphs(pybind11::module_ &m);

}  // namespace pk
