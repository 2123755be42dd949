// host_access.h: host text that touches device memory is told with its line, and ends the program as a device's would.
#pragma once

namespace pk::program {

// On the simulation; kernels' own faults go on to whoever handled them before.
void watch_host_access();

}  // namespace pk::program
