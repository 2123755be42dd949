// mma.h: on the host the types that programs get with it; fragments are the kernels'.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {}
}  // namespace nvcuda
