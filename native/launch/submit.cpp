// submit.cpp: handing work to the gate, and waiting for room in the task's line with a look at signals every 20 ms.
#include "launch/submit.h"

#include "bindings/gil.h"

namespace pk {

static constexpr uint64_t kSignalPeriodNs = 20'000'000;

pk_status submit(const pk_gate_work &work, const pk_command &command) {
  if (forked()) return command.issue(command.self);  // the driver refuses it and says why
  for (;;) {
    const int32_t status = pk_gate_submit(t_state.context, &work, &command);
    if (status != PK_GATE_FULL) return status;
    {
      NoGil released;
      pk_gate_wait(t_state.context, &work, kSignalPeriodNs);
    }
    if (PyErr_CheckSignals() != 0) return PK_GATE_INTERRUPTED;
  }
}

}  // namespace pk
