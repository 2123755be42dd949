// submit.cpp: handing work to the gate, and waiting for room in the task's line, or until the task is resumed, with a
// look at signals every 20 ms.
#include "launch/submit.h"

#include "bindings/gil.h"
#include "launch/exact_sleep.h"
#include "launch/ticket.h"

namespace pk {

static constexpr uint64_t kSignalPeriodNs = 20'000'000;

// Waits without the GIL, and looks at signals with it. False: an exception is set.
template <typename Wait>
static bool waited(Wait wait) {
  if (!t_without_gil) {
    {
      NoGil released;
      wait();
    }
    return PyErr_CheckSignals() == 0;
  }
  wait();
  Gil held;
  return PyErr_CheckSignals() == 0;
}

// Tries until it has another answer than FULL, and waits between two tries.
template <typename Try, typename Wait>
static pk_status until_taken(Try attempt, Wait wait) {
  for (;;) {
    const int32_t status = attempt();
    if (status != PK_GATE_FULL) return status;
    if (!waited(wait)) return PK_GATE_INTERRUPTED;
  }
}

static pk_status handed_over(const pk_gate_work &work, const pk_command &command) {
  if (forked()) return command.issue(command.self);  // the driver refuses it and says why
  return until_taken([&] { return pk_gate_submit(t_state.context, &work, &command); },
                     [&] { pk_gate_wait(t_state.context, &work, kSignalPeriodNs); });
}

pk_status enter() {
  const uint64_t context = t_state.context;
  if (context == 0 || forked()) return PK_OK;
  return until_taken([=] { return pk_gate_enter(context, 0); }, [=] { pk_gate_enter(context, kSignalPeriodNs); });
}

pk_status submit(const pk_gate_work &work, const pk_command &command) {
  if (t_ticket == nullptr) return handed_over(work, command);
  TicketCommand part{command, t_ticket->shared_from_this(), work.stream};
  part.ticket->expect();
  pk_gate_work whole = work;
  whole.wave = 0;  // a ticket's event comes after all of the work, in one piece
  const pk_status status = handed_over(whole, part.as_command());
  if (status != PK_OK) part.ticket->dropped();  // nobody took it
  return status;
}

}  // namespace pk

extern "C" void pk_sleep_exactly(void) {
  static thread_local pk::ExactSleep exact;  // until the thread ends
  (void)exact;
}
