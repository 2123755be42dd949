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

// Whether the thread has let go of it: PyGILState_Check() does not tell in a process that had a subinterpreter.
inline thread_local bool t_without_gil = false;

class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) { t_without_gil = true; }
  ~NoGil() noexcept(false) {
    t_without_gil = false;
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
    t_without_gil = false;
  }
  ~Gil() {
    t_without_gil = true;
    PyGILState_Release(state_);
  }
  Gil(const Gil &) = delete;
  Gil &operator=(const Gil &) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace pk
