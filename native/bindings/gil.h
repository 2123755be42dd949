// gil.h: a scope without the GIL.
#pragma once
#include <Python.h>

#include <chrono>
#include <thread>

namespace pk {

// CPython before 3.14 ends a thread that asks for the GIL of a finalizing interpreter by unwinding its stack, which
// C++ frames answer with std::terminate(). Such a thread sleeps here until the process is gone instead.
struct SleepIfUnwound {
  bool armed = true;
  ~SleepIfUnwound() {
    while (armed) std::this_thread::sleep_for(std::chrono::hours(1));
  }
};

class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  ~NoGil() noexcept(false) {
    SleepIfUnwound sleeper;
    PyEval_RestoreThread(state_);
    sleeper.armed = false;
  }
  NoGil(const NoGil &) = delete;
  NoGil &operator=(const NoGil &) = delete;

 private:
  PyThreadState *state_;
};

// The GIL for a moment, inside the scope of a NoGil.
class Gil {
 public:
  Gil() {
    SleepIfUnwound sleeper;
    state_ = PyGILState_Ensure();
    sleeper.armed = false;
  }
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil &) = delete;
  Gil &operator=(const Gil &) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace pk
