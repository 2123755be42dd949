// spans.h: the union of spans of time, as a running total.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace pk {

class Spans {
 public:
  static constexpr size_t kMaxSpans = 65536;

  // Spans come in about their order. False: a part before what is forgotten already could not be told apart.
  bool add(double from, double to) {
    const bool whole = from >= horizon_;
    from = std::max(from, horizon_);
    if (to <= from) return whole;
    auto first =
        std::lower_bound(spans_.begin(), spans_.end(), from, [](const Span &span, double at) { return span.to < at; });
    auto last = first;
    for (; last != spans_.end() && last->from <= to; ++last) {
      total_ -= last->to - last->from;
      from = std::min(from, last->from);
      to = std::max(to, last->to);
    }
    total_ += to - from;
    if (first == last) {
      spans_.insert(first, {from, to});
    } else {
      *first = {from, to};
      spans_.erase(first + 1, last);
    }
    if (spans_.size() > kMaxSpans) forget_older_half();
    return whole;
  }

  double total() const { return total_; }

 private:
  struct Span {
    double from, to;
  };

  void forget_older_half() {
    const auto kept = spans_.begin() + static_cast<std::ptrdiff_t>(spans_.size() / 2);
    horizon_ = (kept - 1)->to;
    spans_.erase(spans_.begin(), kept);
  }

  std::vector<Span> spans_;  // sorted, apart from one another
  double total_ = 0, horizon_ = -1e300;
};

}  // namespace pk
