// pk_program_library.h: what cublas_v2.h, cufft.h and curand.h share: operands are fetched from the device, this
// package's operations do the work, and results are sent back, in the order of the library's stream.
#pragma once
#include <initializer_list>
#include <vector>

#include "pk_program.h"

namespace pk_program {

// Memory of host or device, as a call of a library has it, on the host while the call works.
template <class T>
class Operand {
 public:
  Operand(const void *place, size_t count, const pk_place &at) : place_(place), values_(count), at_(at) {}
  void fetch() { status_ = cudaMemcpy(values_.data(), place_, values_.size() * sizeof(T), cudaMemcpyDefault, at_); }
  void send() {
    status_ =
        cudaMemcpy(const_cast<void *>(place_), values_.data(), values_.size() * sizeof(T), cudaMemcpyDefault, at_);
  }
  bool failed() const { return status_ != cudaSuccess; }
  void *memory() { return values_.data(); }
  T &operator[](size_t index) { return values_[index]; }

 private:
  const void *place_;
  std::vector<T> values_;
  pk_place at_;
  cudaError_t status_ = cudaSuccess;
};

// True: done.
inline bool library(const char *function, std::initializer_list<void *> memory,
                    std::initializer_list<long long> integers, std::initializer_list<double> numbers,
                    const pk_place &at) {
  return pk_library(function, memory.begin(), integers.begin(), numbers.begin(), at) == 0;
}

}  // namespace pk_program
