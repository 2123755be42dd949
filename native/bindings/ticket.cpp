// ticket.cpp: submitting work with a ticket, and waiting for it.
#include "bindings/ticket.h"

#include <memory>
#include <string>
#include <utility>

#include "bindings/errors.h"
#include "bindings/wait.h"
#include "launch/ticket.h"

namespace py = pybind11;

namespace pk {

// Every command that a call gives to the gate or the device on this thread belongs to the ticket. It has its own way to
// tell of what the device refuses; what the call raises comes from before that.
static std::shared_ptr<Ticket> dispatch(const py::function &call, const py::args &args, const py::kwargs &kwargs) {
  if (!ensure_backend()) throw py::error_already_set();
  if (t_state.context == 0) {  // what passes no gate is no command
    raise_named("GPUError", "dispatch() outside of a session");
    throw py::error_already_set();
  }
  auto ticket = std::make_shared<Ticket>();
  if (const pk_status status = ticket->prepare()) {
    raise_driver_error(status, "making the events of a command");
    throw py::error_already_set();
  }
  Ticket *before = std::exchange(t_ticket, ticket.get());
  PyObject *result = PyObject_Call(call.ptr(), args.ptr(), kwargs.ptr());
  t_ticket = before;
  ticket->seal();
  if (result == nullptr) throw py::error_already_set();
  Py_DECREF(result);
  return ticket;
}

static std::string state_name(Ticket &ticket) {
  static constexpr const char *kNames[] = {"Pending", "Running", "Failed", "Cancelled"};
  const Ticket::State state = ticket.state();
  if (state == Ticket::kFailed || state == Ticket::kCancelled) return kNames[state];
  return ticket.query() == PK_ERROR_NOT_READY ? kNames[state] : "Completed";
}

void bind_tickets(py::module_ &m) {
  py::class_<Ticket, std::shared_ptr<Ticket>>(m, "Ticket", "What becomes of the commands of one dispatch().")
      .def_property_readonly("state", state_name)
      .def_property_readonly("error", &Ticket::error)
      .def_property_readonly("exec_ns",
                             [](Ticket &self) {
                               const double ns = self.query() == PK_OK ? self.elapsed_ns() : -1;
                               return ns < 0 ? py::object(py::none()) : py::object(py::float_(ns));
                             })
      .def("done", [](Ticket &self) { return self.query() != PK_ERROR_NOT_READY; })
      .def("wait",
           [](Ticket &self) {
             if (!wait_until([&self] { return self.query(); }, "waiting for a command")) throw py::error_already_set();
           })
      .def("cancel", &Ticket::cancel)
      .def("fail", &Ticket::fail, py::arg("why"));
  m.def("dispatch", dispatch, py::arg("call"));
}

}  // namespace pk
