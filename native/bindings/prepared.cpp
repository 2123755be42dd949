// prepared.cpp: Prepared, an operation whose calls are prepared: the first call with a signature is written down
// (recorder.h) as it runs, the next ones are a look-up and what was written. One table holds them all and forgets the
// one of a few that was not used for longest.
#include "bindings/prepared.h"

#include <structmember.h>

#include <memory>
#include <string>

#include "bindings/errors.h"
#include "bindings/graph.h"
#include "bindings/recorder.h"
#include "bindings/signature.h"

namespace pk {

constexpr size_t kSets = 256, kWays = 4;

namespace {

struct Entry {
  uint64_t hash = 0, used = 0;
  std::string signature;
  std::shared_ptr<const CallPlan> plan;
};

struct PreparedObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *function;
  uint64_t number;  // never given twice
};

// Takes down what the calling thread does, until it goes away.
class Recording {
 public:
  explicit Recording(Recorder *recorder) { t_recorder = recorder; }
  ~Recording() { t_recorder = nullptr; }
};

}  // namespace

static PyTypeObject Prepared_Type = {PyVarObject_HEAD_INIT(nullptr, 0)};
static Entry (*g_table)[kWays] = nullptr;  // never freed: the interpreter may be gone before it
static uint64_t g_clock = 0, g_hits = 0;
static int g_prepares = -1;  // -1: on devices, not on the simulated one, where operations compute with NumPy

static bool prepares() { return g_prepares >= 0 ? g_prepares > 0 : driver_name() != "sim"; }

static std::shared_ptr<const CallPlan> find(uint64_t hash, std::string_view signature) {
  for (Entry &entry : g_table[hash % kSets]) {
    if (entry.hash != hash || entry.plan == nullptr || entry.signature != signature) continue;
    entry.used = ++g_clock;
    ++g_hits;
    return entry.plan;
  }
  return nullptr;
}

static void keep(uint64_t hash, std::string_view signature, std::shared_ptr<const CallPlan> plan) {
  Entry *oldest = g_table[hash % kSets];
  for (Entry &entry : g_table[hash % kSets])
    if (entry.used < oldest->used) oldest = &entry;
  Entry before = std::exchange(*oldest, Entry{hash, ++g_clock, std::string(signature), std::move(plan)});
}  // what the plan before kept is let go here, when the table is whole again

static PyObject *prepared_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  const PreparedObject *prepared = reinterpret_cast<PreparedObject *>(self);
  if (t_recorder != nullptr || g_driver == nullptr || !prepares() || capturing())
    return PyObject_Vectorcall(prepared->function, args, nargsf, kwnames);
  if (!ensure_backend()) {
    PyErr_Clear();  // the function says so itself, after what it says of its arguments
    return PyObject_Vectorcall(prepared->function, args, nargsf, kwnames);
  }
  Signature signature;
  if (!signature.add_call(prepared->number, args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), kwnames))
    return PyObject_Vectorcall(prepared->function, args, nargsf, kwnames);
  const uint64_t hash = signature.hash();
  if (const auto plan = find(hash, signature.text())) return plan->run(signature.arrays());
  const auto plan = std::make_shared<CallPlan>();
  Recorder recorder(plan.get(), signature.arrays(), signature.count());
  PyObject *result;
  {
    Recording recording(&recorder);
    result = PyObject_Vectorcall(prepared->function, args, nargsf, kwnames);
  }
  if (result != nullptr && recorder.finish(result)) keep(hash, signature.text(), plan);
  return result;
}

// A method of what keeps it is a cycle, which the collector must see.
static int prepared_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(reinterpret_cast<PreparedObject *>(self)->function);
  return 0;
}

static int prepared_clear(PyObject *self) {
  Py_CLEAR(reinterpret_cast<PreparedObject *>(self)->function);
  return 0;
}

static void prepared_dealloc(PyObject *self) {
  PyObject_GC_UnTrack(self);
  prepared_clear(self);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *prepared_new(PyTypeObject *type, PyObject *args, PyObject *) {
  static uint64_t number = 0;
  PyObject *function;
  if (!PyArg_ParseTuple(args, "O:Prepared", &function)) return nullptr;
  if (!PyCallable_Check(function)) return PyErr_Format(PyExc_TypeError, "Prepared: %R is not callable", function);
  PreparedObject *prepared = reinterpret_cast<PreparedObject *>(type->tp_alloc(type, 0));
  if (prepared == nullptr) return nullptr;
  prepared->vectorcall = prepared_call;
  prepared->function = Py_NewRef(function);
  prepared->number = ++number;
  return reinterpret_cast<PyObject *>(prepared);
}

// ---- functions for Python ----

static PyObject *supplied(PyObject *, PyObject *args) {
  PyObject *array, *function;
  if (!PyArg_ParseTuple(args, "O!O:supplied", &ArrayBase_Type, &array, &function)) return nullptr;
  if (t_recorder != nullptr) t_recorder->supplied(array, function);
  return Py_NewRef(array);
}

static PyObject *prepare_calls(PyObject *, PyObject *wanted) {
  g_prepares = wanted == Py_None ? -1 : PyObject_IsTrue(wanted);
  Py_RETURN_NONE;
}

static PyObject *prepared_calls(PyObject *, PyObject *) {
  size_t entries = 0;
  for (size_t set = 0; set < kSets; ++set)
    for (const Entry &entry : g_table[set]) entries += entry.plan != nullptr;
  return Py_BuildValue("{s:n,s:n,s:K}", "held", static_cast<Py_ssize_t>(entries), "most",
                       static_cast<Py_ssize_t>(kSets * kWays), "used", static_cast<unsigned long long>(g_hits));
}

static PyObject *forget_prepared(PyObject *, PyObject *) {
  for (size_t set = 0; set < kSets; ++set)
    for (Entry &entry : g_table[set]) Entry before = std::exchange(entry, Entry{});
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"supplied", supplied, METH_VARARGS,
     "supplied(array, function)\n--\n\nThe array, which function() gives: a prepared call asks it again each time."},
    {"prepare_calls", prepare_calls, METH_O,
     "prepare_calls(wanted)\n--\n\nWhether calls are prepared; None: on devices, not on the simulated one."},
    {"prepared_calls", prepared_calls, METH_NOARGS,
     "How many prepared calls are held, the most that can be, and how often one was used."},
    {"forget_prepared", forget_prepared, METH_NOARGS, "Forget all prepared calls."},
    {nullptr, nullptr, 0, nullptr}};

bool init_prepared(PyObject *module) {
  g_table = new Entry[kSets][kWays];
  Prepared_Type.tp_name = "pygpukit._core.native.Prepared";
  Prepared_Type.tp_basicsize = sizeof(PreparedObject);
  Prepared_Type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC;
  Prepared_Type.tp_vectorcall_offset = offsetof(PreparedObject, vectorcall);
  Prepared_Type.tp_call = PyVectorcall_Call;
  Prepared_Type.tp_doc = "A function of arrays whose calls are worked out once for each signature, then only done.";
  Prepared_Type.tp_new = prepared_new;
  Prepared_Type.tp_traverse = prepared_traverse;
  Prepared_Type.tp_clear = prepared_clear;
  Prepared_Type.tp_dealloc = prepared_dealloc;
  return PyType_Ready(&Prepared_Type) == 0 &&
         PyModule_AddObjectRef(module, "Prepared", reinterpret_cast<PyObject *>(&Prepared_Type)) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace pk
