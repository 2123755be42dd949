// dynlib.cpp: dlopen on POSIX systems, LoadLibrary on Windows (the Windows half is untested).
#include "cuda/dynlib.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace pk {

#ifdef _WIN32

Dynlib dynlib_open(const std::string &name, bool) {
  Dynlib library;
  library.handle = reinterpret_cast<void *>(LoadLibraryExA(name.c_str(), nullptr, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS));
  const DWORD code = library.handle == nullptr ? GetLastError() : 0;
  library.exists = code != ERROR_MOD_NOT_FOUND;
  if (code != 0) library.error = name + ": system error " + std::to_string(code);
  return library;
}

void *Dynlib::symbol(const char *name) const {
  return reinterpret_cast<void *>(GetProcAddress(reinterpret_cast<HMODULE>(handle), name));
}

std::string dynlib_path_of(const void *address) {
  HMODULE module = nullptr;
  char path[MAX_PATH] = "";
  GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                     static_cast<const char *>(address), &module);
  GetModuleFileNameA(module, path, sizeof(path));
  return path;
}

std::string nvrtc_builtins_name(int major, int minor) {
  return "nvrtc-builtins64_" + std::to_string(major) + std::to_string(minor) + ".dll";
}

#else

Dynlib dynlib_open(const std::string &name, bool global) {
  Dynlib library;
  library.handle = dlopen(name.c_str(), RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  library.exists = true;
  if (library.handle == nullptr) {
    const char *text = dlerror();
    library.error = text != nullptr ? text : name + ": no reason given";
    // The loader has no error code; a missing file is told apart by its own name in front of this text (a missing
    // dependency has the dependency's name there).
    library.exists = library.error.rfind(name + ": cannot open shared object file: No such file", 0) != 0;
  }
  return library;
}

void *Dynlib::symbol(const char *name) const { return dlsym(handle, name); }

std::string dynlib_path_of(const void *address) {
  Dl_info info = {};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::string nvrtc_builtins_name(int major, int minor) {
  return "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor);
}

#endif

}  // namespace pk
