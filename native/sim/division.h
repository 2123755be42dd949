// division.h: the least integer divided by -1, which a GPU answers with the least integer and x86-64 with a signal.
#pragma once

namespace pygpukit::sim {

// For a handler of SIGFPE. True: the interrupted division has its result, and the thread may go on.
bool FinishDivision(void *context);

}  // namespace pygpukit::sim
