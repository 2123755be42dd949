// errors.h: thrust::system_error, which an algorithm throws where a call of the runtime failed.
#pragma once
#include <new>
#include <stdexcept>
#include <string>

#ifndef __CUDA_ARCH__
namespace thrust {
namespace system {

class error_category {
 public:
  const char *name() const { return "cuda"; }
  std::string message(int code) const { return cudaGetErrorString(static_cast<cudaError_t>(code)); }
  bool operator==(const error_category &) const { return true; }
};
inline const error_category &cuda_category() {
  static const error_category only;
  return only;
}
class error_code {
 public:
  error_code(int value = 0, const error_category & = cuda_category()) : value_(value) {}
  int value() const { return value_; }
  const error_category &category() const { return cuda_category(); }
  std::string message() const { return category().message(value_); }
  explicit operator bool() const { return value_ != 0; }

 private:
  int value_;
};
class system_error : public std::runtime_error {
 public:
  system_error(error_code code, const std::string &what = "")
      : std::runtime_error(what.empty() ? code.message() : what + ": " + code.message()), code_(code) {}
  system_error(int value, const error_category &, const std::string &what = "")
      : system_error(error_code(value), what) {}
  const error_code &code() const { return code_; }

 private:
  error_code code_;
};
class bad_alloc : public std::bad_alloc {
 public:
  explicit bad_alloc(const std::string &what) : what_(what) {}
  const char *what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace system

using system::bad_alloc;
using system::cuda_category;
using system::error_category;
using system::error_code;
using system::system_error;

namespace pk_detail {
inline void check(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  if (status == cudaErrorMemoryAllocation)
    throw bad_alloc(std::string("std::bad_alloc: ") + cudaGetErrorName(status) + ": " + cudaGetErrorString(status));
  throw system_error(error_code(status), what);
}
}  // namespace pk_detail
}  // namespace thrust
#endif
