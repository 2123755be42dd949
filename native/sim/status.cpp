// status.cpp: names of statuses and the sentence of this thread's last failure.
#include "sim/status.h"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace pygpukit::sim {
namespace {

struct Entry {
  pk_status status;
  const char *name;
  const char *text;
};

constexpr Entry kEntries[] = {
    {PK_OK, "CUDA_SUCCESS", "no error"},
    {PK_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "an argument is outside what the device accepts"},
    {PK_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "the simulated device has not enough free memory"},
    {PK_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "no device is current on this thread"},
    {PK_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "there is no device"},
    {PK_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "there is no device of this number"},
    {PK_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "the image is not one made for the simulated device"},
    {PK_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "a device cannot access the other's memory"},
    {PK_ERROR_NVLINK_UNCORRECTABLE, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "a link between devices failed"},
    {PK_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "the handle names nothing that exists"},
    {PK_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "nothing of this name was found"},
    {PK_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "the work has not finished yet"},
    {PK_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory address was used"},
    {PK_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the launch asks for too many resources"},
    {PK_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the kernel was ended because it took too long"},
    {PK_ERROR_ASSERT, "CUDA_ERROR_ASSERT", "an assertion failed in a kernel"},
    {PK_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "an address was not aligned as its access needs"},
    {PK_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    {PK_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "the device cannot hold all blocks of a cooperative launch at once"},
    {PK_ERROR_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "the device does not launch such clusters"},
    {PK_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "the simulated device does not support this"},
    {PK_ERROR_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "a captured stream takes launches only"},
    {PK_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Entry &Find(pk_status status) {
  for (const Entry &entry : kEntries)
    if (entry.status == status) return entry;
  return kEntries[sizeof kEntries / sizeof kEntries[0] - 1];
}

thread_local pk_status last_status = PK_OK;
thread_local std::string last_text;

}  // namespace

pk_status Fail(pk_status status, std::string text) {
  last_status = status;
  last_text = std::move(text);
  return status;
}

std::string Format(const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

const char *ErrorName(pk_status status) { return Find(status).name; }

const char *ErrorText(pk_status status) {
  return status != PK_OK && status == last_status && !last_text.empty() ? last_text.c_str() : Find(status).text;
}

}  // namespace pygpukit::sim
