// state.h: what a program's runtime knows, and the frame of every call.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "program/include/pk_program_table.h"
#include "pygpukit/driver.h"

namespace pk::program {

// Where something happened in the program. The file's name lies in its library, which is never unloaded.
struct Place {
  const char *file = "";
  int line = 0;
  std::string text() const { return std::string(file) + ":" + std::to_string(line); }
};

struct DeviceState {
  pk_device_info info = {};
  cudaError_t fault = cudaSuccess;  // of a kernel: what later calls return
  bool told = false;                // a call has returned it
  bool used = false;
  std::map<int, bool> peers;
};

struct State {
  const pk_driver *driver = nullptr;
  bool simulated = false;
  std::vector<DeviceState> devices;
  std::recursive_mutex mutex;
};
State &state();

// What each of the program's threads has.
struct Thread {
  int device = 0;
  int bound = -1;  // the device that is current in the driver
  cudaError_t last_error = cudaSuccess;
  Place place;  // of the call that runs
  bool thread_streams = false;
  // The launch that a kernel's stub is about to make.
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  Place launch_place;
  bool launch_thread_streams = false;
};
Thread &thread();

// Opens the driver of the process's backend; a sentence where there is none.
std::string open(const std::string &backend);
inline const pk_driver &driver() { return *state().driver; }
inline DeviceState &device() { return state().devices[static_cast<size_t>(thread().device)]; }

// The runtime's number for a driver's status.
inline cudaError_t error_of(pk_status status) { return static_cast<cudaError_t>(status); }
// Of a call that the program got wrong: the sentence is told where the call returns its error.
cudaError_t fail(cudaError_t error, std::string why);
// Of a call of the driver that failed.
cudaError_t check(pk_status status);
// The thread's last error, for cudaGetLastError().
void remember(cudaError_t error, const char *call);
// What a kernel left behind: the calls in which a device would tell it begin with this. Launches return before a kernel
// has run, and cudaGetLastError() tells what calls have returned.
cudaError_t standing();

// The frame of a call: one at a time, at its place, its error remembered.
class Call {
 public:
  explicit Call(const pk_place *at, const char *name);
  cudaError_t leave(cudaError_t error);

 private:
  std::lock_guard<std::recursive_mutex> guard_;
  const char *const name_;
};

// What the table calls, each in its file by subject.
const char *error_name(cudaError_t error);
const char *error_sentence(cudaError_t error);

#define PK_DECLARE(result, name, parameters, arguments) result name parameters;
PK_PROGRAM_CALLS(PK_DECLARE)
#undef PK_DECLARE
const pk_program::Table &table();

}  // namespace pk::program
