// report.cpp: findings and sums as lines of JSON.
#include "program/report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace pk::program {
namespace {

struct Sum {
  uint64_t count = 0, bytes = 0, nanoseconds = 0;
  dim3 grid, block;
};
struct Noted {
  std::string text;
  Place place;
};
struct Report {
  int descriptor = -1;
  std::map<std::string, Sum> kernels, copies;
  std::vector<Noted> unseen;  // errors since somebody looked
};

Report &report() {
  static Report &only = *new Report;
  return only;
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 32) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      result += escaped;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

void write_all(int descriptor, const std::string &line) {
  for (size_t done = 0; done < line.size();) {
    const ssize_t wrote = write(descriptor, line.data() + done, line.size() - done);
    if (wrote <= 0) return;  // whoever read it is gone
    done += static_cast<size_t>(wrote);
  }
}

void tell(const std::string &line) {
  if (report().descriptor >= 0) write_all(report().descriptor, line + "\n");
}

std::string shape(const dim3 &of) {
  return "[" + std::to_string(of.x) + "," + std::to_string(of.y) + "," + std::to_string(of.z) + "]";
}

}  // namespace

void open_report(int descriptor) { report().descriptor = descriptor; }

void tell_finding(const char *kind, const std::string &message, const Place &place) {
  tell("{\"what\":\"finding\",\"kind\":" + quoted(kind) + ",\"message\":" + quoted(message) +
       ",\"file\":" + quoted(place.file) + ",\"line\":" + std::to_string(place.line) + "}");
  std::fflush(stdout);
  write_all(STDERR_FILENO, (place.line > 0 ? place.text() + ": " : "") + kind + ": " + message + "\n");
}

void note_error(const char *call, cudaError_t error, const std::string &why, const Place &place) {
  constexpr size_t kMaxUnseen = 16;
  if (report().unseen.size() >= kMaxUnseen) return;
  std::string text = std::string(call) + " returned " + error_name(error) + " (" + error_sentence(error) + ")";
  if (!why.empty()) text += ": " + why;
  report().unseen.push_back({std::move(text), place});
}

void note_looked() { report().unseen.clear(); }

void count_kernel(const std::string &name, const dim3 &grid, const dim3 &block, uint64_t nanoseconds) {
  Sum &sum = report().kernels[name];
  ++sum.count;
  sum.nanoseconds += nanoseconds;
  sum.grid = grid;
  sum.block = block;
}

void count_copy(const char *direction, uint64_t bytes, uint64_t nanoseconds) {
  Sum &sum = report().copies[direction];
  ++sum.count;
  sum.bytes += bytes;
  sum.nanoseconds += nanoseconds;
}

void close_report() {
  for (const auto &[name, sum] : report().kernels)
    tell("{\"what\":\"kernel\",\"name\":" + quoted(name) + ",\"launches\":" + std::to_string(sum.count) + ",\"ns\":" +
         std::to_string(sum.nanoseconds) + ",\"grid\":" + shape(sum.grid) + ",\"block\":" + shape(sum.block) + "}");
  for (const auto &[direction, sum] : report().copies)
    tell("{\"what\":\"copy\",\"direction\":" + quoted(direction) + ",\"count\":" + std::to_string(sum.count) +
         ",\"bytes\":" + std::to_string(sum.bytes) + ",\"ns\":" + std::to_string(sum.nanoseconds) + "}");
  for (const Noted &one : report().unseen) tell_finding("unchecked error", one.text, one.place);
  report() = {report().descriptor, {}, {}, {}};
}

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace pk::program
