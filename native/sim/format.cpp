// format.cpp: each conversion is read here and handed to snprintf alone: none writes to memory (%n), none is wider than
// its buffer.
#include "sim/format.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace pygpukit::sim {
namespace {

constexpr int kWidest = 1024;

// What stands between % and the conversion's letter.
struct Conversion {
  std::string flags;
  int width = -1, precision = -1;
  int longs = 0;  // l, ll, j, z and t: how many 64 bits; h and hh: below 0
};

int Number(const char **at) {
  int64_t value = 0;
  for (; **at >= '0' && **at <= '9'; ++*at) value = std::min<int64_t>(value * 10 + (**at - '0'), kWidest);
  return static_cast<int>(value);
}

template <class T>
void Append(const Conversion &one, const char *kind, T value, std::string *out) {
  std::string spec = "%" + one.flags;
  if (one.width >= 0) spec += std::to_string(one.width);
  if (one.precision >= 0) spec += "." + std::to_string(one.precision);
  spec += kind;
  char text[2 * kWidest + 400];  // a double has up to 309 digits before its point
  const int length = snprintf(text, sizeof text, spec.c_str(), value);
  if (length > 0) out->append(text, std::min(static_cast<size_t>(length), sizeof text - 1));
}

}  // namespace

int FormatPrinted(const char *format, va_list arguments, size_t max_bytes, std::string *out) {
  int taken = 0;
  const auto next = [&](int *value) {
    *value = std::min(std::max(va_arg(arguments, int), -kWidest), kWidest);
    ++taken;
  };
  const char *at = format;
  while (*at && out->size() < max_bytes) {
    const char *percent = strchr(at, '%');
    if (!percent) percent = at + strlen(at);
    out->append(at, std::min(static_cast<size_t>(percent - at), max_bytes - out->size()));
    at = percent;
    if (!*at) break;
    Conversion one;
    const char *start = at++;
    while (*at && strchr("-+ #0", *at) && one.flags.size() < 5) one.flags += *at++;
    if (*at == '*') {
      ++at;
      next(&one.width);
      if (one.width < 0) one.flags += '-', one.width = -one.width;
    } else if (*at >= '1' && *at <= '9') {
      one.width = Number(&at);
    }
    if (*at == '.') {
      ++at;
      if (*at == '*') {
        ++at;
        next(&one.precision);
      } else {
        one.precision = Number(&at);
      }
    }
    for (; *at && strchr("hlLqjzt", *at); ++at) one.longs += *at == 'h' ? -1 : *at == 'l' ? 1 : *at == 'L' ? 0 : 2;
    const char letter = *at;
    const bool wide = one.longs > 0;
    if (letter) ++at;
    char kind[4] = {letter, 0};
    if (letter && strchr("diouxX", letter)) {
      const bool is_signed = letter == 'd' || letter == 'i';
      int64_t value = wide ? va_arg(arguments, int64_t) : va_arg(arguments, int);
      if (one.longs == -1) value = is_signed ? int64_t{static_cast<int16_t>(value)} : static_cast<uint16_t>(value);
      if (one.longs < -1) value = is_signed ? int64_t{static_cast<int8_t>(value)} : static_cast<uint8_t>(value);
      if (!wide && !is_signed) value = static_cast<int64_t>(static_cast<uint32_t>(value));
      kind[0] = kind[1] = 'l', kind[2] = letter;
      Append(one, kind, static_cast<long long>(value), out);
    } else if (letter && strchr("eEfFgGaA", letter)) {
      Append(one, kind, va_arg(arguments, double), out);
    } else if (letter == 'c') {
      Append(one, kind, va_arg(arguments, int), out);
    } else if (letter == 'p') {
      Append(one, kind, va_arg(arguments, void *), out);
    } else if (letter == 's') {
      const char *text = va_arg(arguments, const char *);
      if (!text) text = "(null)";
      // Wider than the buffer of the others: a text is copied.
      const size_t room = one.precision >= 0 ? static_cast<size_t>(one.precision) : max_bytes;
      const size_t length = strnlen(text, std::min(room, max_bytes));
      const size_t fill = one.width > static_cast<int>(length) ? static_cast<size_t>(one.width) - length : 0;
      const bool left = one.flags.find('-') != std::string::npos;
      if (!left) out->append(fill, ' ');
      out->append(text, length);
      if (left) out->append(fill, ' ');
    } else {
      const char *end = letter == '%' ? start + 1 : at;
      out->append(start, static_cast<size_t>(end - start));
      continue;
    }
    ++taken;
  }
  if (out->size() > max_bytes) out->resize(max_bytes);
  return taken;
}

}  // namespace pygpukit::sim
