// dynlib.h: shared libraries opened at run time (the one place that knows how each system does it).
#pragma once
#include <string>

namespace pk {

#ifdef _WIN32
constexpr const char *kCudaLibrary = "nvcuda.dll";
#else
constexpr const char *kCudaLibrary = "libcuda.so.1";
#endif

struct Dynlib {
  void *handle = nullptr;  // null: not open
  bool exists = false;     // false: no file of that name; true with a null handle: a file that does not load
  std::string error;       // the system's text when it did not open

  void *symbol(const char *name) const;  // null when absent
};

// Opens a file path, or a plain name by the system's search. `global` makes its symbols visible to libraries opened
// later. Never closed: code from it may run until the process ends.
Dynlib dynlib_open(const std::string &name, bool global = false);

// The file that holds an address, or "".
std::string dynlib_path_of(const void *address);

// File name of the builtins library that belongs to an NVRTC of that version.
std::string nvrtc_builtins_name(int major, int minor);

}  // namespace pk
