// ticket.cpp: the states of a ticket, under a lock that is never held across a call to the device.
#include "launch/ticket.h"

#include <utility>

#include "launch/ordered.h"

namespace pk {

thread_local Ticket *t_ticket = nullptr;

using Lock = std::lock_guard<std::mutex>;

pk_status Ticket::prepare() {
  device_ = t_state.device;
  const pk_status status = g_driver->event_create(1, &begin_);
  return status == PK_OK ? g_driver->event_create(1, &end_) : status;
}

Ticket::~Ticket() {
  if (pk_use_device(device_) != PK_OK) return;
  if (begin_ != 0) g_driver->event_destroy(begin_);
  if (end_ != 0) g_driver->event_destroy(end_);
}

void Ticket::expect() {
  const Lock lock(mutex_);
  ++unissued_;
}

void Ticket::seal() {
  const Lock lock(mutex_);
  sealed_ = true;
}

bool Ticket::begin(const pk_driver *driver, uint64_t stream) {
  bool first;
  {
    const Lock lock(mutex_);
    if (state_ == kFailed || state_ == kCancelled) {
      --unissued_;
      return false;
    }
    first = !std::exchange(begun_, true);
    state_ = kRunning;
  }
  const pk_status status = first ? driver->event_record(begin_, stream) : PK_OK;
  if (status == PK_OK) return true;
  issued(driver, stream, status);
  return false;
}

void Ticket::issued(const pk_driver *driver, uint64_t stream, pk_status status) {
  // Recorded again after each command: it is reached when the last one is done.
  const pk_status ended = status == PK_OK ? driver->event_record(end_, stream) : status;
  const Lock lock(mutex_);
  --unissued_;
  ended_ |= ended == PK_OK;
  if (ended == PK_OK) return;
  state_ = kFailed;
  error_ = driver->error_text(ended);
}

void Ticket::dropped() {
  const Lock lock(mutex_);
  --unissued_;
  if (state_ == kFailed || state_ == kCancelled) return;
  state_ = kCancelled;
  error_ = "dropped before it was issued: its context was destroyed, or an earlier launch of the context was refused";
}

bool Ticket::cancel() {
  const Lock lock(mutex_);
  if (begun_ || state_ != kPending || unissued_ == 0) return false;
  state_ = kCancelled;
  error_ = "cancelled before it was issued";
  return true;
}

void Ticket::fail(const std::string &why) {
  const Lock lock(mutex_);
  if (state_ == kFailed || state_ == kCancelled) return;
  state_ = kFailed;
  error_ = why;
}

Ticket::State Ticket::state() {
  const Lock lock(mutex_);
  return state_;
}

std::string Ticket::error() {
  const Lock lock(mutex_);
  return error_;
}

pk_status Ticket::query() {
  bool ended;
  {
    const Lock lock(mutex_);
    if (state_ == kFailed || state_ == kCancelled) return PK_OK;
    if (!sealed_ || unissued_ > 0) return PK_ERROR_NOT_READY;
    ended = ended_;
  }
  if (!ended) return PK_OK;
  const pk_status status = pk_use_device(device_);  // the thread that asks may have used none yet
  return status == PK_OK ? g_driver->event_query(end_) : status;
}

double Ticket::elapsed_ns() {
  {
    const Lock lock(mutex_);
    if (!ended_) return -1;
  }
  if (pk_use_device(device_) != PK_OK) return -1;
  double ms = 0;
  return g_driver->event_elapsed(begin_, end_, &ms) == PK_OK ? ms * 1e6 : -1;
}

pk_command TicketCommand::as_command() {
  return {.self = this,
          .issue = [](void *self) -> pk_status {
            auto &command = *static_cast<TicketCommand *>(self);
            command.done = true;
            if (!command.ticket->begin(g_raw_driver, command.stream)) return PK_OK;
            const pk_status status = command.inner.issue(command.inner.self);
            command.ticket->issued(g_raw_driver, command.stream, status);
            return PK_OK;  // the ticket tells; what comes behind is none of its business
          },
          .keep = [](void *self) -> void * {
            auto &command = *static_cast<TicketCommand *>(self);
            auto *kept = new TicketCommand(command);
            kept->inner.self = command.inner.keep(command.inner.self);
            return kept;
          },
          .drop =
              [](void *self) {
                auto *kept = static_cast<TicketCommand *>(self);
                kept->inner.drop(kept->inner.self);
                if (!kept->done) kept->ticket->dropped();
                delete kept;
              }};
}

}  // namespace pk
