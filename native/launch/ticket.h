// ticket.h: what becomes of the commands of one submission: waiting, given to the device, done, refused or dropped; and
// how long the device took.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "launch/runtime.h"

namespace pk {

class Ticket : public std::enable_shared_from_this<Ticket> {
 public:
  enum State { kPending, kRunning, kFailed, kCancelled };

  // Makes the events on the thread's device: PK_OK, or why not.
  pk_status prepare();
  ~Ticket();

  // A command of the submission goes to the gate. Each is followed by one begin() or dropped().
  void expect();
  // All commands of the submission went to the gate.
  void seal();
  // Just before a command reaches the stream; driver: by which. False: it must not, its ticket is cancelled or failed.
  bool begin(const pk_driver *driver, uint64_t stream);
  // Just after, with what the device said.
  void issued(const pk_driver *driver, uint64_t stream, pk_status status);
  // The command will never reach the device.
  void dropped();

  // True when nothing of it had begun: nothing of it will.
  bool cancel();
  void fail(const std::string &why);
  State state();
  std::string error();
  // PK_OK: nothing of it is left to do. PK_ERROR_NOT_READY, or the fault that the device tells.
  pk_status query();
  // Nanoseconds between the beginning of the first and the end of the last command; -1 when nothing was issued.
  double elapsed_ns();

 private:
  std::mutex mutex_;
  State state_ = kPending;
  std::string error_;
  int32_t device_ = 0;
  uint64_t begin_ = 0, end_ = 0;
  uint32_t unissued_ = 0;
  bool begun_ = false, ended_ = false, sealed_ = false;
};

// The ticket that work of this thread belongs to, null for none.
extern thread_local Ticket *t_ticket;

// A command that keeps its ticket up to date.
struct TicketCommand {
  pk_command inner;
  std::shared_ptr<Ticket> ticket;
  uint64_t stream;
  bool done = false;
  pk_command as_command();
};

// Work that reaches the stream at once, as part of the thread's ticket if it has one.
template <typename Work>
pk_status with_ticket(uint64_t stream, const Work &work) {
  if (t_ticket == nullptr) return work();
  Ticket &ticket = *t_ticket;
  ticket.expect();
  if (!ticket.begin(g_driver, stream)) return PK_OK;
  const pk_status status = work();
  ticket.issued(g_driver, stream, status);
  return PK_OK;  // the ticket tells
}

}  // namespace pk
