// refused.cpp: the C library of kernels: mathematics, and what compilers call by themselves.
#include "sim/refused.h"

#include <algorithm>
#include <iterator>

namespace pygpukit::sim {
namespace {

constexpr std::string_view kAllowed[] = {
    "__tls_get_addr", "memcmp", "memcpy", "memmove", "memset", "strlen", "vsnprintf",
    // mathematics, each in double; with an f at its end in float
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "frexp", "hypot",
    "ilogb", "j0", "j1", "jn", "ldexp", "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint",
    "lround", "modf", "nearbyint", "nextafter", "pow", "remainder", "remquo", "rint", "round", "roundeven", "scalbln",
    "scalbn", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0", "y1", "yn"};

bool Allowed(std::string_view name) {
  const auto known = [](std::string_view one) {
    return std::find(std::begin(kAllowed), std::end(kAllowed), one) != std::end(kAllowed);
  };
  return known(name) || (!name.empty() && name.back() == 'f' && known(name.substr(0, name.size() - 1)));
}

}  // namespace

std::vector<std::string> RefusedFunctions(const ElfFile &file) {
  std::vector<std::string> refused;
  for (std::string_view name : file.undefined())
    if (!Allowed(name)) refused.emplace_back(name);
  return refused;
}

std::string RefusedCode(const ElfFile &file) {
  const std::vector<std::string> functions = RefusedFunctions(file);
  if (!functions.empty()) return "it calls " + functions[0] + "(), which no device has";
  // A checked image has one of the sanitizer's own, which calls the image's __tsan_init().
  const auto &symbols = file.symbols();
  const bool checked = std::any_of(symbols.begin(), symbols.end(), [](const Symbol &one) {
    return one.kind == Symbol::kFunction && one.name == "__tsan_init";
  });
  return file.functions_at_load() > checked ? "it has code that runs as soon as it is loaded" : "";
}

}  // namespace pygpukit::sim
