// copy.h: copies, fills and host launches for Python.
#pragma once
#include <pybind11/pybind11.h>

#include <functional>
#include <string>
#include <vector>

namespace pk {

// native.copy(dst, src) and native.fill(dst, pattern). False with an exception set.
bool copy_array(PyObject *dst, PyObject *src);
bool fill_array(PyObject *dst, PyObject *pattern);

// A host launch of the simulated device: work that runs on the calling thread, in stream order, with the GIL; with a
// stream that is captured it becomes a step of the graph. False: it failed, with an exception set. The arrays, which it
// uses, stay where they are until it is done. Throws.
using HostWork = std::function<bool()>;
void host_work(const std::string &name, HostWork work, const std::vector<pybind11::object> &arrays);

void bind_copies(pybind11::module_ &m);

}  // namespace pk
