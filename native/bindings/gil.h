// gil.h: a scope without the GIL.
#pragma once
#include <Python.h>

#include <chrono>
#include <thread>

namespace pk {

class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  ~NoGil() noexcept(false) {
    Sleeper sleeper;
    PyEval_RestoreThread(state_);
    sleeper.armed = false;
  }
  NoGil(const NoGil &) = delete;
  NoGil &operator=(const NoGil &) = delete;

 private:
  // CPython before 3.14 ends a thread that asks for the GIL of a finalizing interpreter by unwinding its stack, which
  // C++ frames answer with std::terminate(). Such a thread sleeps here until the process is gone instead.
  struct Sleeper {
    bool armed = true;
    ~Sleeper() {
      while (armed) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  };

  PyThreadState *state_;
};

}  // namespace pk
