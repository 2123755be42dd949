// iterators.h: iterators that compute what they yield, of both sides.
#pragma once
#include "pointers.h"
#include "tuple.h"

// What an iterator derives from the place it is at: `at(i)`, moved by `moved(i)`, `from(other)` steps away.
#define PK_THRUST_ITERATOR(name)                                                \
  typedef long long difference_type;                                            \
  typedef void pointer;                                                         \
  PK_BOTH decltype(auto) operator*() const { return at(0); }                    \
  PK_BOTH decltype(auto) operator[](long long i) const { return at(i); }        \
  PK_BOTH name operator+(long long i) const { return moved(i); }                \
  PK_BOTH name operator-(long long i) const { return moved(-i); }               \
  PK_BOTH long long operator-(const name &other) const { return from(other); }  \
  PK_BOTH name &operator+=(long long i) { return *this = moved(i); }            \
  PK_BOTH name &operator-=(long long i) { return *this = moved(-i); }           \
  PK_BOTH name &operator++() { return *this = moved(1); }                       \
  PK_BOTH name &operator--() { return *this = moved(-1); }                      \
  PK_BOTH name operator++(int) {                                                \
    const name now = *this;                                                     \
    *this = moved(1);                                                           \
    return now;                                                                 \
  }                                                                             \
  PK_BOTH name operator--(int) {                                                \
    const name now = *this;                                                     \
    *this = moved(-1);                                                          \
    return now;                                                                 \
  }                                                                             \
  PK_BOTH bool operator==(const name &other) const { return from(other) == 0; } \
  PK_BOTH bool operator!=(const name &other) const { return from(other) != 0; } \
  PK_BOTH bool operator<(const name &other) const { return from(other) < 0; }

#ifdef __CUDA_ARCH__
#define PK_THRUST_SYSTEM(...) static constexpr bool pk_kernels = true
#else
#define PK_THRUST_SYSTEM(...) static constexpr int pk_system = pk_detail::most(0, __VA_ARGS__)
#endif

namespace thrust {

#ifndef __CUDA_ARCH__
typedef std::random_access_iterator_tag random_access_category;
#else
struct random_access_category {};
#endif

template <class Value, class System = void, class Category = void, class Difference = void>
class counting_iterator {
 public:
  typedef Value value_type;
  typedef Value reference;
  typedef random_access_category iterator_category;
  PK_THRUST_SYSTEM(0);
  PK_BOTH counting_iterator() : first_() {}
  PK_BOTH explicit counting_iterator(Value first) : first_(first) {}
  PK_BOTH Value at(long long i) const { return Value(first_ + i); }
  PK_BOTH counting_iterator moved(long long i) const { return counting_iterator(Value(first_ + i)); }
  PK_BOTH long long from(const counting_iterator &other) const { return (long long)first_ - (long long)other.first_; }
  PK_BOTH Value base() const { return first_; }
  PK_THRUST_ITERATOR(counting_iterator)

 private:
  Value first_;
};
template <class Value>
PK_BOTH counting_iterator<Value> make_counting_iterator(Value first) {
  return counting_iterator<Value>(first);
}

template <class Value>
class constant_iterator {
 public:
  typedef Value value_type;
  typedef Value reference;
  typedef random_access_category iterator_category;
  PK_THRUST_SYSTEM(0);
  PK_BOTH explicit constant_iterator(const Value &value, long long place = 0) : value_(value), place_(place) {}
  PK_BOTH Value at(long long) const { return value_; }
  PK_BOTH constant_iterator moved(long long i) const { return constant_iterator(value_, place_ + i); }
  PK_BOTH long long from(const constant_iterator &other) const { return place_ - other.place_; }
  PK_THRUST_ITERATOR(constant_iterator)

 private:
  Value value_;
  long long place_;
};
template <class Value>
PK_BOTH constant_iterator<Value> make_constant_iterator(Value value) {
  return constant_iterator<Value>(value);
}

namespace pk_detail {
struct nowhere {
  template <class Value>
  PK_BOTH const nowhere &operator=(const Value &) const {
    return *this;
  }
};
}  // namespace pk_detail
class discard_iterator {
 public:
  typedef pk_detail::nowhere value_type;
  typedef pk_detail::nowhere reference;
  typedef random_access_category iterator_category;
  PK_THRUST_SYSTEM(0);
  PK_BOTH explicit discard_iterator(long long place = 0) : place_(place) {}
  PK_BOTH pk_detail::nowhere at(long long) const { return pk_detail::nowhere(); }
  PK_BOTH discard_iterator moved(long long i) const { return discard_iterator(place_ + i); }
  PK_BOTH long long from(const discard_iterator &other) const { return place_ - other.place_; }
  PK_THRUST_ITERATOR(discard_iterator)

 private:
  long long place_;
};
PK_BOTH inline discard_iterator make_discard_iterator() { return discard_iterator(); }

template <class Function, class It, class Reference = void, class Value = void>
class transform_iterator {
 public:
  typedef decltype(pk_detail::some<Function &>()(pk_detail::some<const It &>()[0])) reference;
  typedef typename pk_detail::plain<reference>::type value_type;
  typedef random_access_category iterator_category;
  PK_THRUST_SYSTEM(pk_detail::system_of<It>::value);
  PK_BOTH transform_iterator(const It &it, Function function) : it_(it), function_(function) {}
  PK_BOTH reference at(long long i) const {
    Function function = function_;
    return function(it_[i]);
  }
  PK_BOTH transform_iterator moved(long long i) const { return transform_iterator(it_ + i, function_); }
  PK_BOTH long long from(const transform_iterator &other) const { return it_ - other.it_; }
  PK_BOTH transform_iterator &operator=(const transform_iterator &other) {
    it_ = other.it_;
    return *this;
  }
  transform_iterator(const transform_iterator &) = default;
  PK_BOTH const It &base() const { return it_; }
  PK_BOTH Function functor() const { return function_; }
  PK_THRUST_ITERATOR(transform_iterator)

 private:
  It it_;
  Function function_;
};
template <class Function, class It>
PK_BOTH transform_iterator<Function, It> make_transform_iterator(It it, Function function) {
  return transform_iterator<Function, It>(it, function);
}

template <class Elements, class Indices>
class permutation_iterator {
 public:
  typedef typename iterator_traits<Elements>::value_type value_type;
  typedef typename iterator_traits<Elements>::reference reference;
  typedef random_access_category iterator_category;
  PK_THRUST_SYSTEM(pk_detail::system_of<Elements>::value, pk_detail::system_of<Indices>::value);
  PK_BOTH permutation_iterator(const Elements &elements, const Indices &indices)
      : elements_(elements), indices_(indices) {}
  PK_BOTH reference at(long long i) const { return elements_[(long long)indices_[i]]; }
  PK_BOTH permutation_iterator moved(long long i) const { return permutation_iterator(elements_, indices_ + i); }
  PK_BOTH long long from(const permutation_iterator &other) const { return indices_ - other.indices_; }
  PK_BOTH const Elements &elements() const { return elements_; }
  PK_BOTH const Indices &base() const { return indices_; }
  PK_THRUST_ITERATOR(permutation_iterator)

 private:
  Elements elements_;
  Indices indices_;
};
template <class Elements, class Indices>
PK_BOTH permutation_iterator<Elements, Indices> make_permutation_iterator(Elements elements, Indices indices) {
  return permutation_iterator<Elements, Indices>(elements, indices);
}

template <class It>
class reverse_iterator {
 public:
  typedef typename iterator_traits<It>::value_type value_type;
  typedef typename iterator_traits<It>::reference reference;
  typedef random_access_category iterator_category;
  PK_THRUST_SYSTEM(pk_detail::system_of<It>::value);
  PK_BOTH explicit reverse_iterator(const It &it) : it_(it) {}
  PK_BOTH reference at(long long i) const { return it_[-1 - i]; }
  PK_BOTH reverse_iterator moved(long long i) const { return reverse_iterator(it_ - i); }
  PK_BOTH long long from(const reverse_iterator &other) const { return other.it_ - it_; }
  PK_BOTH const It &base() const { return it_; }
  PK_THRUST_ITERATOR(reverse_iterator)

 private:
  It it_;
};
template <class It>
PK_BOTH reverse_iterator<It> make_reverse_iterator(It it) {
  return reverse_iterator<It>(it);
}

template <class Tuple>
class zip_iterator;
template <class... Its>
class zip_iterator<tuple<Its...>> {
 public:
  typedef tuple<typename iterator_traits<Its>::value_type...> value_type;
  typedef tuple<typename iterator_traits<Its>::reference...> reference;
  typedef random_access_category iterator_category;
  PK_THRUST_SYSTEM(pk_detail::system_of<Its>::value...);
  typedef typename pk_detail::make_numbers<sizeof...(Its)>::type all;
  PK_BOTH explicit zip_iterator(const tuple<Its...> &its) : its_(its) {}
  PK_BOTH explicit zip_iterator(const Its &...its) : its_(its...) {}
  PK_BOTH reference at(long long i) const { return at(i, all()); }
  PK_BOTH zip_iterator moved(long long i) const { return moved(i, all()); }
  PK_BOTH long long from(const zip_iterator &other) const { return thrust::get<0>(its_) - thrust::get<0>(other.its_); }
  PK_BOTH const tuple<Its...> &get_iterator_tuple() const { return its_; }
  PK_THRUST_ITERATOR(zip_iterator)

 private:
  template <int... Numbers>
  PK_BOTH reference at(long long i, pk_detail::numbers<Numbers...>) const {
    return reference(thrust::get<Numbers>(its_)[i]...);
  }
  template <int... Numbers>
  PK_BOTH zip_iterator moved(long long i, pk_detail::numbers<Numbers...>) const {
    return zip_iterator(tuple<Its...>((thrust::get<Numbers>(its_) + i)...));
  }
  tuple<Its...> its_;
};
template <class... Its>
PK_BOTH zip_iterator<tuple<Its...>> make_zip_iterator(const tuple<Its...> &its) {
  return zip_iterator<tuple<Its...>>(its);
}
template <class... Its>
PK_BOTH zip_iterator<tuple<Its...>> make_zip_iterator(const Its &...its) {
  return zip_iterator<tuple<Its...>>(tuple<Its...>(its...));
}

// ---- as kernels have them
#ifndef __CUDA_ARCH__
namespace pk_detail {
template <class Function, class It, class Reference, class Value>
struct raw_iterator<transform_iterator<Function, It, Reference, Value>> {
  typedef transform_iterator<Function, raw_t<It>> type;
  static type of(const transform_iterator<Function, It, Reference, Value> &it) {
    return type(raw(it.base()), it.functor());
  }
};
template <class Elements, class Indices>
struct raw_iterator<permutation_iterator<Elements, Indices>> {
  typedef permutation_iterator<raw_t<Elements>, raw_t<Indices>> type;
  static type of(const permutation_iterator<Elements, Indices> &it) { return type(raw(it.elements()), raw(it.base())); }
};
template <class It>
struct raw_iterator<reverse_iterator<It>> {
  typedef reverse_iterator<raw_t<It>> type;
  static type of(const reverse_iterator<It> &it) { return type(raw(it.base())); }
};
template <class... Its>
struct raw_iterator<zip_iterator<tuple<Its...>>> {
  typedef zip_iterator<tuple<raw_t<Its>...>> type;
  static type of(const zip_iterator<tuple<Its...>> &it) {
    return with(it.get_iterator_tuple(), typename make_numbers<sizeof...(Its)>::type());
  }
  template <int... Numbers>
  static type with(const tuple<Its...> &its, numbers<Numbers...>) {
    return type(tuple<raw_t<Its>...>(raw(thrust::get<Numbers>(its))...));
  }
};
}  // namespace pk_detail
#endif

}  // namespace thrust
