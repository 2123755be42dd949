// module.cpp: the C++ submodule, pygpukit._core.native.
#include <pybind11/pybind11.h>

#include "bindings/array.h"
#include "bindings/backend.h"
#include "bindings/cell_time.h"
#include "bindings/copy.h"
#include "bindings/dense.h"
#include "bindings/dlpack.h"
#include "bindings/function.h"
#include "bindings/graph.h"
#include "bindings/host_model.h"
#include "bindings/kernel.h"
#include "bindings/nvrtc.h"
#include "bindings/peers.h"
#include "bindings/prepared.h"
#include "bindings/program.h"
#include "bindings/resident.h"
#include "bindings/session.h"
#include "bindings/stream.h"
#include "bindings/textures.h"
#include "bindings/ticket.h"
#include "bindings/transfers.h"
#include "launch/ordered.h"

namespace py = pybind11;

static PyMethodDef loop_method = {"launch_loop_ns", pk::launch_loop_ns, METH_VARARGS,
                                  "launch_loop_ns(bound, args, launches)\n--\n\n"
                                  "Nanoseconds a launch of a C++ loop over the device table with the same arguments."};

static PyMethodDef many_method = {"launch_many", pk::launch_many, METH_VARARGS,
                                  "launch_many(bound, args, launches)\n--\n\n"
                                  "Launch so often with the same arguments, each as by a call of its own."};

PYBIND11_MODULE(native, m) {
  m.doc() = "Devices, arrays, launches and the compiler: the C++ layer.";
  pk::bind_backend(m);
  pk::bind_streams(m);
  pk::bind_cell_times(m);
  pk::bind_functions(m);
  pk::bind_graphs(m);
  pk::bind_copies(m);
  pk::bind_host_model(m);
  pk::bind_transfers(m);
  pk::bind_peers(m);
  pk::bind_program(m);
  pk::bind_dlpack(m);
  pk::bind_nvrtc(m);
  pk::bind_sessions(m);
  pk::bind_tickets(m);
  pk::bind_residents(m);
  pk::bind_textures(m);
  if (!pk::init_array(m.ptr()) || !pk::init_kernel(m.ptr()) || !pk::init_dense(m.ptr()) || !pk::init_prepared(m.ptr()))
    throw py::error_already_set();
  m.add_object("launch_loop_ns", py::reinterpret_steal<py::object>(PyCFunction_New(&loop_method, nullptr)));
  m.add_object("launch_many", py::reinterpret_steal<py::object>(PyCFunction_New(&many_method, nullptr)));
  Py_AtExit([] {
    if (!pk::forked()) pk_gate_close();
  });
}
