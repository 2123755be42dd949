// table.cpp: the table that a program's calls go through.
#include "program/state.h"

namespace pk::program {
namespace {

// The frame of a call around what does it.
template <class Tag, auto function>
struct Entry;
template <class Tag, class Result, class... Parameters, Result (*function)(Parameters...)>
struct Entry<Tag, function> {
  static Result call(const pk_place *at, Parameters... parameters) {
    Call frame(at, Tag::name);
    if constexpr (std::is_same_v<Result, cudaError_t>) {
      return frame.leave(function(parameters...));
    } else {
      return function(parameters...);
    }
  }
};

#define PK_NAME(result, function, parameters, arguments) \
  struct function##_name {                               \
    static constexpr const char *name = #function;       \
  };
PK_PROGRAM_CALLS(PK_NAME)
#undef PK_NAME

constexpr pk_program::Table kTable = {
#define PK_FILL(result, name, parameters, arguments) &Entry<name##_name, &program::name>::call,
    PK_PROGRAM_CALLS(PK_FILL)
#undef PK_FILL
};

}  // namespace

const pk_program::Table &table() { return kTable; }

}  // namespace pk::program
