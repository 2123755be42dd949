// nvrtc.cpp: opening NVRTC, and one compilation.
#include "jit/nvrtc.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <type_traits>

#include "cuda/dynlib.h"

namespace pk {

namespace {

using Program = void *;
using FlowCallback = int (*)(void *payload, void *reserved);

struct NvrtcApi {
  const char *(*GetErrorString)(int) = nullptr;
  int (*Version)(int *, int *) = nullptr;
  int (*GetNumSupportedArchs)(int *) = nullptr;
  int (*GetSupportedArchs)(int *) = nullptr;
  int (*CreateProgram)(Program *, const char *, const char *, int, const char *const *, const char *const *) = nullptr;
  int (*DestroyProgram)(Program *) = nullptr;
  int (*CompileProgram)(Program, int, const char *const *) = nullptr;
  int (*GetPTXSize)(Program, size_t *) = nullptr;
  int (*GetPTX)(Program, char *) = nullptr;
  int (*GetCUBINSize)(Program, size_t *) = nullptr;
  int (*GetCUBIN)(Program, char *) = nullptr;
  int (*GetProgramLogSize)(Program, size_t *) = nullptr;
  int (*GetProgramLog)(Program, char *) = nullptr;
  int (*AddNameExpression)(Program, const char *) = nullptr;
  int (*GetLoweredName)(Program, const char *, const char **) = nullptr;
  int (*SetFlowCallback)(Program, FlowCallback, void *) = nullptr;                         // 12.9 and later
  int (*InstallBundledHeaders)(const char *, unsigned int, const char **error) = nullptr;  // 13.3 and later
  int (*GetTileIRSize)(Program, size_t *) = nullptr;                                       // 13.3 and later
  int (*GetTileIR)(Program, char *) = nullptr;                                             // 13.3 and later
};

struct Nvrtc {
  NvrtcApi api;
  std::string path;
  int major = 0;
  int minor = 0;
};

std::mutex *const g_mutex = new std::mutex;    // leaked: threads may outlive static destruction
std::atomic<const Nvrtc *> g_nvrtc = nullptr;  // set once, under the mutex

// Fills `nvrtc` from one candidate; "" or why not.
std::string load(const std::string &candidate, Nvrtc *nvrtc) {
  const Dynlib file = dynlib_open(candidate);
  if (file.handle == nullptr) return file.exists ? file.error : candidate + ": no such file";
  NvrtcApi &api = nvrtc->api;
  std::string missing;
  const auto resolve = [&](const char *name, auto *function, bool required) {
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(file.symbol(name));
    if (*function == nullptr && required) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  resolve("nvrtcGetErrorString", &api.GetErrorString, true);
  resolve("nvrtcVersion", &api.Version, true);
  resolve("nvrtcGetNumSupportedArchs", &api.GetNumSupportedArchs, true);
  resolve("nvrtcGetSupportedArchs", &api.GetSupportedArchs, true);
  resolve("nvrtcCreateProgram", &api.CreateProgram, true);
  resolve("nvrtcDestroyProgram", &api.DestroyProgram, true);
  resolve("nvrtcCompileProgram", &api.CompileProgram, true);
  resolve("nvrtcGetPTXSize", &api.GetPTXSize, true);
  resolve("nvrtcGetPTX", &api.GetPTX, true);
  resolve("nvrtcGetCUBINSize", &api.GetCUBINSize, true);
  resolve("nvrtcGetCUBIN", &api.GetCUBIN, true);
  resolve("nvrtcGetProgramLogSize", &api.GetProgramLogSize, true);
  resolve("nvrtcGetProgramLog", &api.GetProgramLog, true);
  resolve("nvrtcAddNameExpression", &api.AddNameExpression, true);
  resolve("nvrtcGetLoweredName", &api.GetLoweredName, true);
  resolve("nvrtcSetFlowCallback", &api.SetFlowCallback, false);
  resolve("nvrtcInstallBundledHeaders", &api.InstallBundledHeaders, false);
  resolve("nvrtcGetTileIRSize", &api.GetTileIRSize, false);
  resolve("nvrtcGetTileIR", &api.GetTileIR, false);
  if (!missing.empty()) return candidate + ": lacks " + missing;
  if (const int status = api.Version(&nvrtc->major, &nvrtc->minor); status != 0) {
    return candidate + ": nvrtcVersion failed with status " + std::to_string(status);
  }
  nvrtc->path = dynlib_path_of(reinterpret_cast<void *>(api.Version));
  // NVRTC opens its builtins by plain name at the first compilation and finds only what is on the search path or open
  // already.
  const std::string builtins = nvrtc_builtins_name(nvrtc->major, nvrtc->minor);
  const size_t slash = nvrtc->path.find_last_of("/\\");
  const std::string beside = slash == std::string::npos ? builtins : nvrtc->path.substr(0, slash + 1) + builtins;
  if (dynlib_open(beside, true).handle == nullptr && dynlib_open(builtins, true).handle == nullptr) {
    return nvrtc->path + ": its companion " + builtins + " is neither beside it nor on the library search path";
  }
  return "";
}

bool has_nul(const std::string &text) { return text.find('\0') != std::string::npos; }

// NVRTC takes C strings, so that text after a NUL byte would be left out in silence.
std::string nul_fault(const CompileRequest &request) {
  if (const size_t at = request.source.find('\0'); at != std::string::npos) {
    return "the source has a NUL byte at offset " + std::to_string(at);
  }
  if (has_nul(request.name)) return "the program's name has a NUL byte";
  for (const std::string &option : request.options) {
    if (has_nul(option)) return "an option has a NUL byte: " + option.substr(0, option.find('\0'));
  }
  for (const auto &[name, text] : request.headers) {
    if (has_nul(name) || has_nul(text)) return "the header '" + name.substr(0, name.find('\0')) + "' has a NUL byte";
  }
  for (const std::string &expression : request.name_expressions) {
    if (has_nul(expression)) return "a name expression has a NUL byte: " + expression.substr(0, expression.find('\0'));
  }
  return "";
}

int cancelled(void *payload, void *) { return static_cast<const std::atomic<bool> *>(payload)->load() ? 1 : 0; }

// One program from creation to destruction.
class Compilation {
 public:
  Compilation(const NvrtcApi &api, const CompileRequest &request, CompileResult *result)
      : api_(api), request_(request), result_(*result) {}
  ~Compilation() {
    if (program_ != nullptr) api_.DestroyProgram(&program_);
  }
  Compilation(const Compilation &) = delete;

  void run() {
    if (!create()) return;
    std::vector<const char *> options;
    for (const std::string &option : request_.options) options.push_back(option.c_str());
    result_.status = api_.CompileProgram(program_, static_cast<int>(options.size()), options.data());
    result_.log = text(api_.GetProgramLogSize, api_.GetProgramLog, true);
    if (result_.status != 0) {
      if (result_.log.empty()) failed("nvrtcCompileProgram", result_.status);
      return;
    }
    result_.cubin = text(api_.GetCUBINSize, api_.GetCUBIN, false);
    result_.ptx = text(api_.GetPTXSize, api_.GetPTX, true);
    if (api_.GetTileIRSize != nullptr && api_.GetTileIR != nullptr) {
      result_.tile_ir = text(api_.GetTileIRSize, api_.GetTileIR, false);
    }
    for (const std::string &expression : request_.name_expressions) {
      const char *lowered = nullptr;
      if (!done("nvrtcGetLoweredName", api_.GetLoweredName(program_, expression.c_str(), &lowered))) return;
      result_.lowered_names.emplace_back(expression, lowered);
    }
  }

 private:
  bool create() {
    std::vector<const char *> names, texts;
    for (const auto &[name, text] : request_.headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    const int status = api_.CreateProgram(&program_, request_.source.c_str(), request_.name.c_str(),
                                          static_cast<int>(names.size()), texts.data(), names.data());
    if (!done("nvrtcCreateProgram", status)) return false;
    for (const std::string &expression : request_.name_expressions) {
      if (!done("nvrtcAddNameExpression", api_.AddNameExpression(program_, expression.c_str()))) return false;
    }
    if (request_.cancel == nullptr || api_.SetFlowCallback == nullptr) return true;
    void *payload = const_cast<std::atomic<bool> *>(request_.cancel);
    return done("nvrtcSetFlowCallback", api_.SetFlowCallback(program_, cancelled, payload));
  }

  bool done(const char *call, int status) {
    if (status != 0) failed(call, status);
    return status == 0;
  }

  void failed(const char *call, int status) {
    result_.status = status;
    result_.log = std::string(call) + " failed: " + api_.GetErrorString(status);
  }

  // A size and a fill function make a string; the compiler's texts count their final NUL.
  std::string text(int (*size)(Program, size_t *), int (*fill)(Program, char *), bool terminated) const {
    size_t bytes = 0;
    if (size(program_, &bytes) != 0 || bytes == 0) return "";
    std::string buffer(bytes, '\0');
    if (fill(program_, buffer.data()) != 0) return "";
    if (terminated && buffer.back() == '\0') buffer.pop_back();
    return buffer;
  }

  const NvrtcApi &api_;
  const CompileRequest &request_;
  CompileResult &result_;
  Program program_ = nullptr;
};

}  // namespace

std::string nvrtc_open(const std::vector<std::string> &candidates, std::string *path, int *major, int *minor) {
  std::lock_guard<std::mutex> lock(*g_mutex);
  const Nvrtc *open = g_nvrtc;
  if (open == nullptr) {
    std::string tried;
    for (const std::string &candidate : candidates) {
      auto *fresh = new Nvrtc;
      const std::string fault = load(candidate, fresh);
      if (fault.empty()) {
        g_nvrtc = open = fresh;
        break;
      }
      delete fresh;
      tried += (tried.empty() ? "" : "; ") + fault;
    }
    if (open == nullptr) return "NVRTC was not found (" + (tried.empty() ? "nothing to try" : tried) + ")";
  }
  *path = open->path;
  *major = open->major;
  *minor = open->minor;
  return "";
}

CompileResult nvrtc_compile(const CompileRequest &request) noexcept {
  CompileResult result;
  const auto start = std::chrono::steady_clock::now();
  try {
    const Nvrtc *nvrtc = g_nvrtc;
    if (nvrtc == nullptr) {
      result.status = kNvrtcNotLoaded;
      result.log = "NVRTC is not open";
    } else if (std::string fault = nul_fault(request); !fault.empty()) {
      result.status = kNvrtcInvalidInput;
      result.log = std::move(fault);
    } else {
      Compilation(nvrtc->api, request, &result).run();
    }
  } catch (const std::exception &) {  // only the host's own memory can run out here
    result = CompileResult();
    result.status = kNvrtcOutOfMemory;
    result.log = "out of memory";  // short enough to need none
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::vector<int> nvrtc_architectures() {
  const Nvrtc *nvrtc = g_nvrtc;
  int count = 0;
  if (nvrtc == nullptr || nvrtc->api.GetNumSupportedArchs(&count) != 0) return {};
  std::vector<int> architectures(static_cast<size_t>(count));
  if (nvrtc->api.GetSupportedArchs(architectures.data()) != 0) return {};
  return architectures;
}

std::string nvrtc_install_headers(const std::string &folder) {
  const Nvrtc *nvrtc = g_nvrtc;
  if (nvrtc == nullptr) return "NVRTC is not open";
  if (nvrtc->api.InstallBundledHeaders == nullptr) {
    return "NVRTC " + std::to_string(nvrtc->major) + "." + std::to_string(nvrtc->minor) +
           " carries no CUDA headers: install nvidia-cuda-nvrtc 13.3 or newer, or give an include path";
  }
  const char *error = nullptr;
  const int status = nvrtc->api.InstallBundledHeaders(folder.c_str(), 0, &error);
  if (status == 0) return "";
  return "NVRTC could not write its headers to " + folder + ": " +
         (error != nullptr && error[0] != '\0' ? error : nvrtc->api.GetErrorString(status));
}

}  // namespace pk
