// linear.h: what a layer of a model is: out = after(norm(x) W^T + b), with W read as it is stored.
#pragma once
#include <vector>

#include "host/kernels.h"

namespace pk::host {

enum class After { kStore, kAdd, kGelu, kGeluErf, kSilu };

struct Part {
  Weight weight;
  int64_t rows;
};

struct Norm {
  const float *weight = nullptr, *bias = nullptr;  // no norm where there is no weight
  float epsilon = 0;
  bool centered = false;
};

// A row's bits depend on that row alone. kSilu: the first half of W's rows times the second half, out half as wide.
struct Linear {
  const float *x;
  int64_t rows, k;
  Norm norm;
  std::vector<Part> parts;  // below each other
  const float *bias;
  After after;
  float *out;

  int64_t columns() const;  // of out
  void run() const;
};

}  // namespace pk::host
