// recorder.cpp: writing a call of an operation down, and doing it again.
#include "bindings/recorder.h"

#include <algorithm>

#include "bindings/copy.h"

namespace pk {

CallPlan::~CallPlan() {
  for (Action &action : actions) {
    Py_XDECREF(action.object);
    for (auto &[slot, value] : action.values) Py_XDECREF(value);
  }
}

// ---- writing down ----

Recorder::Recorder(CallPlan *plan, PyObject *const *inputs, int count) : plan_(plan) {
  for (int i = 0; i < count; ++i) {
    const ArrayObject *array = as_array(inputs[i]);
    int64_t low = array->offset, high = array->offset;
    for (int axis = 0; axis < array->ndim && array->size > 0; ++axis)
      (array->strides[axis] < 0 ? low : high) += (array->shape[axis] - 1) * array->strides[axis];
    add(array, low, array->size > 0 ? high + itemsize_of(array) : low);
  }
  plan_->inputs = count;
}

int Recorder::slot_of(const void *array) {
  for (int slot = plan_->slots - 1; slot >= 0; --slot)
    if (known_[static_cast<size_t>(slot)].array == array) return slot;
  spoiled_ = true;
  return -1;
}

int Recorder::add(const ArrayObject *array, int64_t low, int64_t high) {
  if (plan_->slots == kMaxSlots) {
    spoiled_ = true;
    return -1;
  }
  known_.push_back({array, low, high});
  return plan_->slots++;
}

void Recorder::note_new(const ArrayObject *array) {
  if (spoiled_) return;
  const int slot = add(array, 0, static_cast<int64_t>(array->storage->bytes));
  plan_->layouts.emplace_back(array);
  plan_->actions.push_back({Action::kEmpty, slot, -1, plan_->layouts.size() - 1});
}

void Recorder::viewed(const ArrayObject *array, PyObject *source) {
  if (spoiled_) return;
  const int base = slot_of(source);
  if (base < 0) return;
  const Known &own = known_[static_cast<size_t>(base)];
  int64_t low = array->offset, high = array->offset;
  for (int axis = 0; axis < array->ndim && array->size > 0; ++axis)
    (array->strides[axis] < 0 ? low : high) += (array->shape[axis] - 1) * array->strides[axis];
  if (array->size > 0 && (low < own.low || high + itemsize_of(array) > own.high)) return spoil();
  const int slot = add(array, own.low, own.high);
  plan_->layouts.emplace_back(array);
  plan_->actions.push_back({Action::kView, slot, base, plan_->layouts.size() - 1});
}

void Recorder::supplied(PyObject *array, PyObject *function) {
  if (spoiled_) return;
  for (const Known &known : known_)
    if (known.array == array) return spoil();  // just made, or supplied before
  const int slot = add(as_array(array), 0, 0);
  plan_->actions.push_back({Action::kSupply, slot, -1, 0, Py_NewRef(function)});
}

// Values that nothing can change after the call.
static bool stays(PyObject *value) {
  return value == Py_None || PyBool_Check(value) || PyBytes_CheckExact(value) || PyLong_CheckExact(value) ||
         PyFloat_CheckExact(value) || PyComplex_CheckExact(value);
}

void Recorder::launched(PyObject *bound, PyObject *const *values, size_t count) {
  if (spoiled_) return;
  if (count > kMaxSlots) return spoil();
  Action action = {Action::kLaunch, -1, -1, 0, Py_NewRef(bound)};
  for (size_t i = 0; i < count; ++i) {
    if (is_array(values[i])) {
      action.values.emplace_back(slot_of(values[i]), nullptr);
    } else {
      action.values.emplace_back(-1, Py_NewRef(values[i]));
      spoiled_ = spoiled_ || !stays(values[i]);
    }
  }
  plan_->actions.push_back(std::move(action));
}

void Recorder::copied(PyObject *target, PyObject *source) {
  if (!spoiled_) plan_->actions.push_back({Action::kCopy, slot_of(target), slot_of(source)});
}

void Recorder::filled(PyObject *array, PyObject *pattern) {
  if (!spoiled_) plan_->actions.push_back({Action::kFill, slot_of(array), -1, 0, Py_NewRef(pattern)});
}

// Another array may come to lie where it was.
void Recorder::gone(const ArrayObject *array) {
  for (Known &known : known_)
    if (known.array == array) known.array = nullptr;
}

bool Recorder::finish(PyObject *result) {
  plan_->tuple = PyTuple_CheckExact(result);
  if (plan_->tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
      plan_->results.push_back(slot_of(PyTuple_GET_ITEM(result, i)));
  } else if (result != Py_None) {
    plan_->results.push_back(slot_of(result));
  }
  if (spoiled_) return false;
  std::vector<bool> needed(static_cast<size_t>(plan_->slots));
  for (const int slot : plan_->results) needed[static_cast<size_t>(slot)] = true;
  for (auto action = plan_->actions.rbegin(); action != plan_->actions.rend(); ++action) {
    const auto use = [&](int slot) {
      if (slot < 0 || needed[static_cast<size_t>(slot)]) return;
      needed[static_cast<size_t>(slot)] = true;
      action->last.push_back(slot);
    };
    use(action->slot);
    use(action->other);
    for (const auto &[slot, value] : action->values) use(slot);
  }
  return true;
}

// ---- doing it again ----

namespace {
struct Slots {
  PyObject *arrays[kMaxSlots];
  int count;
  ~Slots() {
    for (int i = 0; i < count; ++i) Py_XDECREF(arrays[i]);
  }
};
}  // namespace

static PyObject *made_anew(const ArrayLayout &layout) {
  Storage *storage = allocate(static_cast<uint64_t>(layout.size * pk_dtype_bytes(layout.dtype)));
  if (storage == nullptr) return nullptr;
  PyObject *array = array_over(storage, layout);
  drop_storage(storage);
  return array;
}

static bool launch_again(const Action &action, PyObject *const *arrays) {
  PyObject *values[kMaxSlots];
  size_t count = 0;
  for (const auto &[slot, value] : action.values) values[count++] = slot >= 0 ? arrays[slot] : value;
  PyObject *done = PyObject_Vectorcall(action.object, values, count, nullptr);
  Py_XDECREF(done);
  return done != nullptr;
}

static bool do_again(const Action &action, const std::vector<ArrayLayout> &layouts, PyObject **arrays) {
  switch (action.kind) {
    case Action::kEmpty:
      return (arrays[action.slot] = made_anew(layouts[action.layout])) != nullptr;
    case Action::kView:
      return (arrays[action.slot] = array_over(as_array(arrays[action.other])->storage, layouts[action.layout])) !=
             nullptr;
    case Action::kSupply:
      return (arrays[action.slot] = PyObject_CallNoArgs(action.object)) != nullptr;
    case Action::kLaunch:
      return launch_again(action, arrays);
    case Action::kCopy:
      return copy_array(arrays[action.slot], arrays[action.other]);
    case Action::kFill:
      return fill_array(arrays[action.slot], action.object);
  }
  return false;
}

PyObject *CallPlan::run(PyObject *const *inputs_of_call) const {
  Slots own = {{}, slots};
  for (int i = 0; i < inputs; ++i) own.arrays[i] = Py_NewRef(inputs_of_call[i]);
  for (const Action &action : actions) {
    if (!do_again(action, layouts, own.arrays)) return nullptr;
    for (const int slot : action.last) Py_CLEAR(own.arrays[slot]);
  }
  if (!tuple) return Py_NewRef(results.empty() ? Py_None : own.arrays[results[0]]);
  PyObject *all = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
  for (size_t i = 0; all != nullptr && i < results.size(); ++i)
    PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), Py_NewRef(own.arrays[results[i]]));
  return all;
}

}  // namespace pk
