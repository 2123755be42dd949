// state.cpp: opening the driver, and the frame of every call.
#include "program/state.h"

#include "program/report.h"

namespace pk::program {

State &state() {
  static State &only = *new State;  // never destroyed: the program's own destructors still call
  return only;
}

Thread &thread() {
  static thread_local Thread own;
  return own;
}

static thread_local std::string t_why;

std::string open(const std::string &backend) {
  const char *why = nullptr;
  const pk_driver *driver = backend == "sim" ? pk_sim_driver(&why) : pk_cuda_driver(&why);
  if (driver == nullptr) return why;
  state().driver = driver;
  state().simulated = backend == "sim";
  int32_t count = 0;
  if (driver->device_count(&count) != PK_OK) return driver->error_text(PK_ERROR_NO_DEVICE);
  for (int32_t device = 0; device < count; ++device) {
    DeviceState made;
    if (const pk_status status = driver->device_info(device, &made.info)) return driver->error_text(status);
    state().devices.push_back(made);
  }
  return "";
}

cudaError_t fail(cudaError_t error, std::string why) {
  t_why = std::move(why);
  return error;
}

cudaError_t check(pk_status status) {
  return status == PK_OK ? cudaSuccess : fail(error_of(status), driver().error_text(status));
}

cudaError_t standing() {
  DeviceState &current = device();
  current.told |= current.fault != cudaSuccess;
  return current.fault;
}

void remember(cudaError_t error, const char *call) {
  thread().last_error = error;
  note_error(call, error, t_why, thread().place);
}

Call::Call(const pk_place *at, const char *name) : guard_(state().mutex), name_(name) {
  Thread &own = thread();
  own.place = {at->file, at->line};
  own.thread_streams = at->thread_streams != 0;
  t_why.clear();
  if (own.bound != own.device && driver().device_use(own.device) == PK_OK) own.bound = own.device;
}

cudaError_t Call::leave(cudaError_t error) {
  if (error == cudaSuccess || error == cudaErrorNotReady) return error;
  // Those two tell of errors that others returned.
  if (name_ == std::string_view("cudaGetLastError") || name_ == std::string_view("cudaPeekAtLastError")) return error;
  remember(error, name_);
  return error;
}

}  // namespace pk::program
