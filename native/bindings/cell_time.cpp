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

// Records of 72 bytes: the 48 of pk_event, then begin_ns, end_ns, launches.
class TracePeriod {
 public:
  explicit TracePeriod(size_t works) : period_(busy_begin(works)) {}
  ~TracePeriod() { busy_end(*period_); }
  void end() { busy_end(*period_); }
  py::tuple read() {
    const Trace trace = busy_take(*period_);
    const auto *bytes = reinterpret_cast<const char *>(trace.works.data());
    return py::make_tuple(py::bytes(bytes, trace.works.size() * sizeof(TracedWork)), trace.untimed,
                          busy_read(*period_).pending);
  }

 private:
  std::shared_ptr<Busy> period_;
};
static_assert(sizeof(TracedWork) == 72);

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

uint32_t enter_plugin(const Text &name) {
  return std::exchange(t_state.plugin, pk_intern(name.utf8.data(), name.utf8.size()));
}

}  // namespace

void bind_cell_times(py::module_ &m) {
  py::class_<CellTime>(m, "CellTime", "Times what is launched outside tasks, from now until end().")
      .def(py::init<>())
      .def("end", &CellTime::end)
      .def("read", &CellTime::read,
           "(nanoseconds that the device was busy, launches in them, whether more is to come, whether it is a lower "
           "bound)");
  py::class_<TracePeriod>(m, "Trace", "Keeps what is launched outside tasks one by one, from now until end().")
      .def(py::init<size_t>(), py::arg("works"))
      .def("end", &TracePeriod::end)
      .def("read", &TracePeriod::read,
           "(records of 72 bytes that came since the last call, works that are not among them, whether more is to "
           "come)");
  m.def("enter_plugin", enter_plugin, py::arg("name"),
        "Records of what this thread launches name this plugin, too, until leave_plugin() of what is returned.");
  m.def(
      "leave_plugin", [](uint32_t before) { t_state.plugin = before; }, py::arg("before"),
      "Records of this thread name the plugin before, or none, again.");
  m.def("set_launch_timing", set_mode, py::arg("mode"), "'on', 'exact' or 'off'; of the whole process.");
  m.def("launch_timing", mode_name);
  m.def(
      "measured_launches", [] { return g_measured_launches.load(); },
      "How many launches of tasks have their time in the counter task_ns, now or later.");
}

}  // namespace pk
