// program.h: a program's runtime as the process that runs it sees it (bindings/program.cpp).
#pragma once
#include <cstdint>
#include <string>

namespace pk::program {

// Opens the backend; findings and sums go to the descriptor as lines of JSON, -1 for none, and so do the times of the
// first launches, copies and fills, at most `times`. A sentence where there is no backend. Once a process.
std::string start(const std::string &backend, int report_descriptor, uint32_t times);
// What is told at the end. A program that ended with an error has looked at those of its calls. Once; later calls do
// nothing.
void finish(int exit_code);
// The table of calls, for PYGPUKIT_PROGRAM_CALLS.
uint64_t calls();

void give_image(const std::string &unit, const std::string &image);
// kind: 0 a kernel, 1 a __device__, 2 a __constant__, 3 a __managed__ variable. What lies at this offset of the library
// is called so in the unit's image.
void give_symbol(const std::string &library, uint64_t offset, int kind, const std::string &name,
                 const std::string &unit, uint64_t bytes, const std::string &file, int line);

// Does a function of a library, by its name, on memory of the host; 0 when it is done. The process's own, so that it
// may be Python's.
using LibraryFunction = int (*)(const char *function, void *const *memory, const long long *integers,
                                const double *numbers);
void give_library(uint64_t function);

}  // namespace pk::program
