// mock.h: a stand-in for libcuda.so.1 with one device that has host memory and no processor. For tests without a GPU.
//
// Environment: MOCK_CUDA_VERSION (13000), MOCK_CUDA_DEVICES (1), MOCK_CUDA_SM (90; "75,90" for two devices),
// MOCK_CUDA_STUB (1 = answer as the toolkit's stub), MOCK_CUDA_MISSING (symbols to leave out, with commas),
// MOCK_CUDA_FAIL ("cuMemMap:2,..." = that call fails so), MOCK_CUDA_MEMORY (bytes, 1 GiB), MOCK_CUDA_SMS (132),
// MOCK_CUDA_MPS (0; 1 = contexts are shared by a server; -1 = the driver does not know), MOCK_CUDA_LOG (a file that
// gets one line a call), MOCK_CUDA_MEMLOCK (0; 1 = RLIMIT_MEMLOCK bounds pinned memory, also that of root),
// MOCK_CUDA_PEERS (1; 0 = no device accesses another's memory), MOCK_CUDA_CUBIN (a file: what PTX is assembled to),
// MOCK_CUDA_LINK_UNTIL (assembling waits for this file).
#pragma once
#include <cstdarg>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/cuda_api.h"

namespace mock {

using pk::cuda::Address;
using pk::cuda::ArrayDescriptor;
using pk::cuda::Copy3D;
using pk::cuda::DevResource;
using pk::cuda::Handle;
using pk::cuda::HostFunction;
using pk::cuda::LaunchConfig;
using pk::cuda::MemAccessDesc;
using pk::cuda::MemAllocationProp;
using pk::cuda::ResourceDescriptor;
using pk::cuda::Result;
using pk::cuda::TextureDescriptor;
using pk::cuda::Uuid;

// One function for each symbol that the loader asks for; the table in api.cpp takes their addresses.
#define MOCK_DECLARE(name, version, need, parameters) Result name parameters;
PK_CUDA_SYMBOLS(MOCK_DECLARE)
#undef MOCK_DECLARE

long setting(const char *name, long otherwise);
std::vector<std::string> list_setting(const char *name);
int device_sm(int device);
uint64_t memory_bytes();

// Makes host memory a place that copies may go to.
void add_memory(Address address, size_t bytes);

// Writes one line to the log, and gives the status that MOCK_CUDA_FAIL wants of this call (0 = carry on).
[[gnu::format(printf, 2, 3)]] Result called(const char *name, const char *format, ...);

// A context is current on this thread (201 without one).
Result need_context();

// Every call starts with MOCK_CALL: log, wanted failure.
#define MOCK_CALL(name, ...) \
  if (Result wanted = ::mock::called(#name, __VA_ARGS__)) return wanted
#define MOCK_CONTEXT() \
  if (Result lacking = ::mock::need_context()) return lacking

}  // namespace mock
