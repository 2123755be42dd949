// report.cpp: findings and sums as lines of JSON.
#include "program/report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace pk::program {
namespace {

struct Sum {
  uint64_t count = 0, bytes = 0, operations = 0;
  bool counted = false;
  uint64_t timed = 0, nanoseconds = 0;
  dim3 grid, block;
  size_t shared_bytes = 0;
  double occupancy = 0;
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

std::string times_of(const Sum &sum) {
  return ",\"bytes\":" + std::to_string(sum.bytes) + ",\"timed\":" + std::to_string(sum.timed) +
         ",\"ns\":" + std::to_string(sum.nanoseconds);
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

bool count_kernel(const std::string &name, const dim3 &grid, const dim3 &block, size_t shared_bytes, Amount amount) {
  Sum &sum = report().kernels[name];
  const bool same = sum.count > 0 && sum.block.x == block.x && sum.block.y == block.y && sum.block.z == block.z &&
                    sum.shared_bytes == shared_bytes;
  ++sum.count;
  sum.bytes += amount.bytes;
  sum.operations += amount.operations;
  sum.counted |= amount.counted;
  sum.grid = grid;
  sum.block = block;
  sum.shared_bytes = shared_bytes;
  return !same;
}

void note_occupancy(const std::string &name, double occupancy) { report().kernels[name].occupancy = occupancy; }

void count_copy(const char *direction, uint64_t bytes) {
  Sum &sum = report().copies[direction];
  ++sum.count;
  sum.bytes += bytes;
}

void add_time(const char *kind, const std::string &name, uint64_t nanoseconds) {
  const std::string_view what = kind;
  if (what != "kernel" && what != "copy") return;
  Sum &sum = (what == "kernel" ? report().kernels : report().copies)[name];
  ++sum.timed;
  sum.nanoseconds += nanoseconds;
}

void tell_work(const char *kind, const std::string &name, const Place &place, const std::array<uint64_t, 7> &numbers) {
  std::string line = "{\"what\":\"work\",\"kind\":" + quoted(kind) + ",\"name\":" + quoted(name) +
                     ",\"file\":" + quoted(place.file) + ",\"line\":" + std::to_string(place.line) + ",\"numbers\":[";
  for (const uint64_t one : numbers) line += std::to_string(one) + ",";
  line.back() = ']';
  tell(line + "}");
}

void close_report() {
  for (const auto &[name, sum] : report().kernels)
    tell("{\"what\":\"kernel\",\"name\":" + quoted(name) + ",\"launches\":" + std::to_string(sum.count) +
         times_of(sum) + ",\"operations\":" + (sum.counted ? std::to_string(sum.operations) : "null") +
         ",\"occupancy\":" + std::to_string(sum.occupancy) + ",\"grid\":" + shape(sum.grid) +
         ",\"block\":" + shape(sum.block) + "}");
  for (const auto &[direction, sum] : report().copies)
    tell("{\"what\":\"copy\",\"direction\":" + quoted(direction) + ",\"count\":" + std::to_string(sum.count) +
         times_of(sum) + "}");
  for (const Noted &one : report().unseen) tell_finding("unchecked error", one.text, one.place);
  report() = {report().descriptor, {}, {}, {}};
}

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace pk::program
