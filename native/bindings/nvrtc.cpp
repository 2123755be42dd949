// nvrtc.cpp: compiles on a thread of its own, so that Ctrl-C gives the prompt back while the compiler winds down.
#include "bindings/nvrtc.h"

#include <pybind11/stl.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/wait.h"
#include "jit/nvrtc.h"

namespace py = pybind11;

namespace pk {

static py::tuple open_library(const std::vector<std::string> &candidates) {
  std::string path, why;
  int major = 0, minor = 0;
  {
    NoGil released;
    why = nvrtc_open(candidates, &path, &major, &minor);
  }
  if (why.empty()) return py::make_tuple(path, py::make_tuple(major, minor));
  const py::object cls = py::module_::import("pygpukit.core.errors").attr("NvrtcError");
  PyErr_SetObject(cls.ptr(), cls(why, kNvrtcNotLoaded).ptr());
  throw py::error_already_set();
}

struct Job {
  CompileRequest request;
  CompileResult result;
  std::atomic<bool> cancel{false};
  std::atomic<bool> done{false};
};

static py::tuple compile(const std::string &source, const std::string &name, const std::vector<std::string> &options,
                         const std::map<std::string, std::string> &headers,
                         const std::vector<std::string> &name_expressions) {
  auto job = std::make_shared<Job>();
  job->request =
      CompileRequest{source, name, options, {headers.begin(), headers.end()}, name_expressions, &job->cancel};
  std::thread([job] {
    job->result = nvrtc_compile(job->request);
    job->done.store(true, std::memory_order_release);
  }).detach();
  const auto finished = [&job] { return job->done.load(std::memory_order_acquire) ? PK_OK : PK_ERROR_NOT_READY; };
  if (!wait_until(finished, "compiling")) {
    job->cancel.store(true);
    throw py::error_already_set();
  }
  const CompileResult &result = job->result;
  py::dict lowered;
  for (const auto &[expression, symbol] : result.lowered_names) lowered[py::str(expression)] = symbol;
  return py::make_tuple(result.status, py::str(py::bytes(result.log).attr("decode")("utf-8", "replace")),
                        py::bytes(result.cubin), py::bytes(result.ptx), lowered, py::bytes(result.tile_ir));
}

void bind_nvrtc(py::module_ &m) {
  m.def("nvrtc_open", open_library, py::arg("candidates"));
  m.def("nvrtc_compile", compile, py::arg("source"), py::arg("name"), py::arg("options"), py::arg("headers"),
        py::arg("name_expressions"));
  m.def("nvrtc_architectures", nvrtc_architectures);
  m.def(
      "nvrtc_install_headers",
      [](const std::string &folder) {
        std::string why;
        {
          NoGil released;
          why = nvrtc_install_headers(folder);
        }
        if (why.empty()) return;
        raise_named("NvrtcError", why);
        throw py::error_already_set();
      },
      py::arg("folder"));
}

}  // namespace pk
