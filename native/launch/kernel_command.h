// kernel_command.h: a kernel launch that can be kept: with copies of its arguments.
#pragma once
#include "launch/runtime.h"

namespace pk {

class KernelCommand {
 public:
  struct Request {
    pk_launch launch;
    uint64_t variant;  // runs parts of it, if any does
  };

  explicit KernelCommand(const pk_launch &launch) : request_{launch, 0} {}
  // Whether the driver tells how large the arguments are.
  bool can_keep() const;
  // What the gate should know of it; before as_command().
  pk_gate_work work(uint32_t name);
  pk_command as_command();

 private:
  Request request_;
};

// A module goes: what is known of its functions is forgotten, because their handles may name others later.
void forget_parameters();

}  // namespace pk
