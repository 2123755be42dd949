// nvrtc.h: NVRTC, opened at run time: CUDA C++ source in, CUBIN and PTX out. Needs neither a GPU nor a CUDA toolkit.
#pragma once
#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace pk {

// Codes beside NVRTC's own (0 .. 18).
constexpr int kNvrtcOutOfMemory = 1;
constexpr int kNvrtcInvalidInput = 3;
constexpr int kNvrtcCompilation = 6;
constexpr int kNvrtcInternalError = 11;
constexpr int kNvrtcCancelled = 16;
constexpr int kNvrtcNotLoaded = 1000;

// Opens the first candidate that loads: file paths, or plain names for the dynamic loader's own search. Returns "" when
// a library is open, else one sentence that lists what was tried and why each failed. One library serves the process: a
// later call answers with the one already open. Thread-safe.
std::string nvrtc_open(const std::vector<std::string> &candidates, std::string *path, int *major, int *minor);

struct CompileRequest {
  std::string source;
  std::string name;                                          // the file name in diagnostics
  std::vector<std::string> options;                          // as for nvcc; --gpu-architecture=sm_XX gives a CUBIN
  std::vector<std::pair<std::string, std::string>> headers;  // (name as in #include, text), from memory
  std::vector<std::string> name_expressions;
  // Set from another thread to stop the compiler. It looks between its phases only (with large headers, after a second
  // or more): a caller that must return at once leaves the thread behind, with request and flag kept alive.
  const std::atomic<bool> *cancel = nullptr;
};

struct CompileResult {
  int status = kNvrtcInternalError;  // 0 = compiled
  std::string log;                   // the compiler's diagnostics; on other failures one sentence
  std::string cubin;                 // empty for a virtual architecture (compute_XX)
  std::string ptx;
  std::string tile_ir;  // of a unit compiled with --enable-tile, for tileiras; else empty
  std::vector<std::pair<std::string, std::string>> lowered_names;  // (name expression, symbol), in the request's order
  double seconds = 0;
};

// Blocks until compiled. Safe from several threads; never throws. Without nvrtc_open(): kNvrtcNotLoaded.
CompileResult nvrtc_compile(const CompileRequest &request) noexcept;

// Architectures that the open library can compile for (80 for sm_80); empty when none is open.
std::vector<int> nvrtc_architectures();

// Writes the headers that NVRTC 13.3 and later carry (cuda_fp16.h, cuda_bf16.h, mma.h, cooperative_groups.h, cccl/ ...)
// under `folder`, unless they are there already; the include paths are then `folder` and `folder`/cccl. "" = done, else
// one sentence. Processes that do it at once wait for each other.
std::string nvrtc_install_headers(const std::string &folder);

}  // namespace pk
