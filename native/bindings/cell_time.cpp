// cell_time.cpp: periods of busy.h as Python objects, and how launches are timed in them.
#include "bindings/cell_time.h"

#include <memory>
#include <string>
#include <utility>

#include "bindings/text.h"
#include "launch/busy.h"
#include "launch/submit.h"

namespace py = pybind11;

namespace pk {

namespace {

constexpr std::pair<const char *, Timing> kModes[] = {
    {"off", Timing::kOff}, {"on", Timing::kStretches}, {"exact", Timing::kEach}};

class CellTime {
 public:
  ~CellTime() { end(); }
  void end() { busy_end(*period_); }
  py::tuple read() {
    const BusyReading reading = busy_read(*period_);
    return py::make_tuple(reading.ns, reading.launches, reading.pending, reading.cut);
  }

 private:
  std::shared_ptr<Busy> period_ = busy_begin();
};

void set_mode(const Text &text) {
  const std::string &requested = text.utf8;
  for (const auto &[name, mode] : kModes)
    if (requested == name) return set_timing(mode);
  throw py::value_error("there is no timing '" + requested + "': use 'on', 'exact' or 'off'");
}

const char *mode_name() {
  for (const auto &[name, mode] : kModes)
    if (timing() == mode) return name;
  return "";
}

}  // namespace

void bind_cell_times(py::module_ &m) {
  py::class_<CellTime>(m, "CellTime", "Times what is launched outside tasks, from now until end().")
      .def(py::init<>())
      .def("end", &CellTime::end)
      .def("read", &CellTime::read,
           "(nanoseconds that the device was busy, launches in them, whether more is to come, whether it is a lower "
           "bound)");
  m.def("set_launch_timing", set_mode, py::arg("mode"), "'on', 'exact' or 'off'; of the whole process.");
  m.def("launch_timing", mode_name);
  m.def(
      "measured_launches", [] { return g_measured_launches.load(); },
      "How many launches of tasks have their time in the counter task_ns, now or later.");
}

}  // namespace pk
