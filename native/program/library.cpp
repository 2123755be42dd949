// library.cpp: the functions of libraries, which the process that runs the program does by this package's operations.
#include "program/program.h"
#include "program/state.h"

namespace pk::program {

static LibraryFunction g_library = nullptr;

void give_library(uint64_t function) { g_library = reinterpret_cast<LibraryFunction>(function); }

int pk_library(const char *function, void *const *memory, const long long *integers, const double *numbers) {
  return g_library == nullptr ? 1 : g_library(function, memory, integers, numbers);
}

}  // namespace pk::program
