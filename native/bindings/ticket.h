// ticket.h: tickets as Python sees them: submitting work with one, and waiting for it.
#pragma once
#include <pybind11/pybind11.h>

namespace pk {

void bind_tickets(pybind11::module_ &m);

}  // namespace pk
