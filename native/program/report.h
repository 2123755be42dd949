// report.h: the report of a program: findings when they are found, and sums at its end. Each is a line of JSON on the
// report's descriptor; a finding is also a line on stderr.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "program/state.h"

namespace pk::program {

// -1: nowhere but on stderr.
void open_report(int descriptor);

void tell_finding(const char *kind, const std::string &message, const Place &place);

// An error that a call returned; told at the end if the program went on as if nothing had happened. cudaGetLastError()
// takes note that somebody looked.
void note_error(const char *call, cudaError_t error, const std::string &why, const Place &place);
void note_looked();

// What a launch does: counted on the simulation, if its image counts; else the bytes of the memory that its arguments
// point to.
struct Amount {
  uint64_t bytes = 0, operations = 0;
  bool counted = false;
};
// True where its last launch, if there was one, had other blocks.
bool count_kernel(const std::string &name, const dim3 &grid, const dim3 &block, size_t shared_bytes, Amount amount);
// The part of a multiprocessor's threads that the kernel's last launch can fill, 0 to 1.
void note_occupancy(const std::string &name, double occupancy);
void count_copy(const char *direction, uint64_t bytes);
// How long one launch of a kernel ("kernel"), or one copy, took.
void add_time(const char *kind, const std::string &name, uint64_t nanoseconds);
// One piece of work. numbers: device, stream, beginning and end in nanoseconds, blocks, threads, bytes.
void tell_work(const char *kind, const std::string &name, const Place &place, const std::array<uint64_t, 7> &numbers);

// The sums; errors that nobody looked at.
void close_report();

uint64_t now_ns();

}  // namespace pk::program
