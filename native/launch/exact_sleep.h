// exact_sleep.h: sleeps of the calling thread end when they should. Linux lets each last 50 us more by default, to wake
// several threads at once.
#pragma once
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace pk {

#ifdef __linux__
// While it lives.
class ExactSleep {
 public:
  ExactSleep() : before_ns_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1); }
  ~ExactSleep() {
    if (before_ns_ > 0) prctl(PR_SET_TIMERSLACK, before_ns_);
  }
  ExactSleep(const ExactSleep &) = delete;
  ExactSleep &operator=(const ExactSleep &) = delete;

 private:
  const int before_ns_;
};
#else
class ExactSleep {
 public:
  ExactSleep() {}  // not `= default`: an object of this type is there for its life
};
#endif

}  // namespace pk
