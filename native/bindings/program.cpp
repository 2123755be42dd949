// program.cpp: starting and ending the runtime of a whole program.
#include "bindings/program.h"

#include <stdexcept>

#include "launch/runtime.h"
#include "program/program.h"

namespace py = pybind11;

namespace pk {

void bind_program(py::module_ &m) {
  m.def(
      "program_start",
      [](int report, uint32_t times) {
        if (const std::string why = program::start(driver_name(), report, times); !why.empty())
          throw std::runtime_error(why);
      },
      py::arg("report"), py::arg("times"));
  m.def("program_finish", program::finish, py::arg("exit_code"), py::call_guard<py::gil_scoped_release>());
  m.def("program_calls", program::calls);
  m.def("program_library", program::give_library, py::arg("function"));
  m.def(
      "program_image",
      [](const std::string &unit, const py::bytes &image) { program::give_image(unit, std::string(image)); },
      py::arg("unit"), py::arg("image"));
  m.def("program_symbol", program::give_symbol, py::arg("library"), py::arg("offset"), py::arg("kind"), py::arg("name"),
        py::arg("unit"), py::arg("nbytes"), py::arg("file"), py::arg("line"));
}

}  // namespace pk
