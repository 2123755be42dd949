// random.h: generators and distributions of both sides.
#pragma once
#include "core.h"

namespace thrust {
namespace random {

// x becomes x * factor modulo a prime.
template <unsigned factor>
class linear_congruential {
 public:
  typedef unsigned result_type;
  static constexpr unsigned min = 1, max = 2147483646u, default_seed = 1;
  PK_BOTH explicit linear_congruential(unsigned seed = 1) : state_(seed % 2147483647u == 0 ? 1 : seed % 2147483647u) {}
  PK_BOTH void seed(unsigned value = 1) { *this = linear_congruential(value); }
  PK_BOTH unsigned operator()() {
    state_ = (unsigned)((unsigned long long)state_ * factor % 2147483647u);
    return state_;
  }
  // As many calls at once: the factor's power.
  PK_BOTH void discard(unsigned long long count) {
    unsigned long long power = 1, square = factor;
    for (; count != 0; count /= 2) {
      if (count % 2 != 0) power = power * square % 2147483647u;
      square = square * square % 2147483647u;
    }
    state_ = (unsigned)(power * state_ % 2147483647u);
  }

 private:
  unsigned state_;
};
typedef linear_congruential<48271u> minstd_rand;
typedef linear_congruential<16807u> minstd_rand0;
typedef minstd_rand default_random_engine;

template <class Real = double>
class uniform_real_distribution {
 public:
  typedef Real result_type;
  PK_BOTH explicit uniform_real_distribution(Real a = Real(0), Real b = Real(1)) : a_(a), b_(b) {}
  template <class Engine>
  PK_BOTH Real operator()(Engine &engine) {
    const Real part = Real(engine() - Engine::min) / (Real(1) + Real(Engine::max - Engine::min));
    return part * (b_ - a_) + a_;
  }
  PK_BOTH Real a() const { return a_; }
  PK_BOTH Real b() const { return b_; }

 private:
  Real a_, b_;
};
template <class Integer = int>
class uniform_int_distribution {
 public:
  typedef Integer result_type;
  PK_BOTH explicit uniform_int_distribution(Integer a = 0, Integer b = 2147483647) : a_(a), b_(b) {}
  template <class Engine>
  PK_BOTH Integer operator()(Engine &engine) {
    const double part = double(engine() - Engine::min) / (1.0 + double(Engine::max - Engine::min));
    return Integer(a_ + (long long)(part * (double(b_) - double(a_) + 1.0)));
  }
  PK_BOTH Integer a() const { return a_; }
  PK_BOTH Integer b() const { return b_; }

 private:
  Integer a_, b_;
};
// By Box and Muller: of two uniform numbers one normal one.
template <class Real = double>
class normal_distribution {
 public:
  typedef Real result_type;
  PK_BOTH explicit normal_distribution(Real mean = Real(0), Real deviation = Real(1))
      : mean_(mean), deviation_(deviation) {}
  template <class Engine>
  PK_BOTH Real operator()(Engine &engine) {
    const double range = 1.0 + double(Engine::max - Engine::min);
    const double one = (double(engine() - Engine::min) + 1.0) / range, two = double(engine() - Engine::min) / range;
    return Real(double(mean_) + double(deviation_) * sqrt(-2.0 * log(one)) * cos(6.283185307179586476925 * two));
  }
  PK_BOTH Real mean() const { return mean_; }
  PK_BOTH Real stddev() const { return deviation_; }

 private:
  Real mean_, deviation_;
};

}  // namespace random
using random::default_random_engine;
using random::minstd_rand;
using random::minstd_rand0;
using random::normal_distribution;
using random::uniform_int_distribution;
using random::uniform_real_distribution;
}  // namespace thrust
