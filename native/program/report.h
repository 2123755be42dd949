// report.h: the report of a program: findings when they are found, and sums at its end. Each is a line of JSON on the
// report's descriptor; a finding is also a line on stderr.
#pragma once
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

void count_kernel(const std::string &name, const dim3 &grid, const dim3 &block, uint64_t nanoseconds);
void count_copy(const char *direction, uint64_t bytes, uint64_t nanoseconds);

// The sums; errors that nobody looked at.
void close_report();

uint64_t now_ns();

}  // namespace pk::program
