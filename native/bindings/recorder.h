// recorder.h: what one call of an operation does with arrays, written down so that it can be done again with others.
#pragma once
#include <Python.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/array.h"

namespace pk {

constexpr int kMaxSlots = 64;  // arrays that a call works with: its own, and those that it makes

// One action. Slots are numbers of arrays: first the call's own, then those that the actions make.
struct Action {
  enum Kind : uint8_t { kEmpty, kView, kSupply, kLaunch, kCopy, kFill };
  Kind kind;
  int slot = -1, other = -1;                            // made or written; viewed or copied
  size_t layout = 0;                                    // of what is made
  PyObject *object = nullptr;                           // what launches, supplies or fills
  std::vector<std::pair<int, PyObject *>> values = {};  // of a launch: a slot, or -1 and a value
  std::vector<int> last = {};                           // slots that no later action uses
};

// A whole call.
struct CallPlan {
  int inputs = 0, slots = 0;
  bool tuple = false;  // the result is a tuple of arrays
  std::vector<int> results;
  std::vector<ArrayLayout> layouts;
  std::vector<Action> actions;

  CallPlan() = default;
  CallPlan(const CallPlan &) = delete;
  CallPlan &operator=(const CallPlan &) = delete;
  ~CallPlan();
  // Does it with other arrays of the same layouts. A new reference to the result, null with an exception set.
  PyObject *run(PyObject *const *arrays) const;
};

// Writes a call down. Whatever it cannot repeat spoils the record: work on arrays that are not the call's own, waits,
// transfers, and addresses, which the caller may have put into parameters.
class Recorder {
 public:
  Recorder(CallPlan *plan, PyObject *const *inputs, int count);
  void note_new(const ArrayObject *array);
  void viewed(const ArrayObject *array, PyObject *source);
  void supplied(PyObject *array, PyObject *function);
  void launched(PyObject *bound, PyObject *const *values, size_t count);
  void copied(PyObject *target, PyObject *source);
  void filled(PyObject *array, PyObject *pattern);
  void gone(const ArrayObject *array);
  void spoil() { spoiled_ = true; }
  // Whether the plan is complete and gives this result again.
  bool finish(PyObject *result);

 private:
  struct Known {
    const void *array;
    int64_t low, high;  // bytes of its storage that views may reach
  };
  int slot_of(const void *array);
  int add(const ArrayObject *array, int64_t low, int64_t high);

  CallPlan *plan_;
  std::vector<Known> known_;
  bool spoiled_ = false;
};

// Of the calling thread's call, null when none is written down.
inline thread_local Recorder *t_recorder = nullptr;
inline void spoil_record() {
  if (__builtin_expect(t_recorder != nullptr, 0)) t_recorder->spoil();
}

}  // namespace pk
