// kernel_command.h: a kernel launch that can be kept: with copies of its arguments.
#pragma once
#include "launch/runtime.h"

namespace pk {

class KernelCommand {
 public:
  explicit KernelCommand(const pk_launch &launch) : launch_(launch) {}
  // Whether the driver tells how large the arguments are.
  bool can_keep() const;
  pk_command as_command();

 private:
  const pk_launch &launch_;
};

// A module goes: what is known of its functions is forgotten, because their handles may name others later.
void forget_parameters();

}  // namespace pk
