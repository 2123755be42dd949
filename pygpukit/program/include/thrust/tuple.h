// tuple.h: tuples and pairs of both sides.
#pragma once
#include "core.h"

namespace thrust {

template <class First, class Second>
struct pair {
  typedef First first_type;
  typedef Second second_type;
  First first;
  Second second;
  PK_BOTH pair() : first(), second() {}
  PK_BOTH pair(const First &one, const Second &two) : first(one), second(two) {}
  template <class Other, class Another>
  PK_BOTH pair(const pair<Other, Another> &other) : first(other.first), second(other.second) {}
};
template <class First, class Second>
PK_BOTH pair<First, Second> make_pair(First first, Second second) {
  return pair<First, Second>(first, second);
}
template <class First, class Second>
PK_BOTH bool operator==(const pair<First, Second> &a, const pair<First, Second> &b) {
  return a.first == b.first && a.second == b.second;
}
template <class First, class Second>
PK_BOTH bool operator<(const pair<First, Second> &a, const pair<First, Second> &b) {
  return a.first < b.first || (!(b.first < a.first) && a.second < b.second);
}

template <class... Types>
class tuple;
template <>
class tuple<> {
 public:
  PK_BOTH tuple() {}
};
template <class Head, class... Tail>
class tuple<Head, Tail...> {
 public:
  Head head;
  tuple<Tail...> tail;
  PK_BOTH tuple() : head(), tail() {}
  PK_BOTH tuple(const tuple &other) : head(other.head), tail(other.tail) {}
  PK_BOTH explicit tuple(const Head &first, const Tail &...rest) : head(first), tail(rest...) {}
  template <class Other, class... Others>
  PK_BOTH tuple(const tuple<Other, Others...> &other) : head(other.head), tail(other.tail) {}
  PK_BOTH tuple &operator=(const tuple &other) {
    head = other.head;
    tail = other.tail;
    return *this;
  }
  template <class Other, class... Others>
  PK_BOTH tuple &operator=(const tuple<Other, Others...> &other) {
    head = other.head;
    tail = other.tail;
    return *this;
  }
};

template <int Number, class Tuple>
struct tuple_element;
template <class Head, class... Tail>
struct tuple_element<0, tuple<Head, Tail...>> {
  typedef Head type;
  static PK_BOTH Head &of(tuple<Head, Tail...> &from) { return from.head; }
  static PK_BOTH const Head &of(const tuple<Head, Tail...> &from) { return from.head; }
};
template <int Number, class Head, class... Tail>
struct tuple_element<Number, tuple<Head, Tail...>> {
  typedef tuple_element<Number - 1, tuple<Tail...>> next;
  typedef typename next::type type;
  static PK_BOTH type &of(tuple<Head, Tail...> &from) { return next::of(from.tail); }
  static PK_BOTH const type &of(const tuple<Head, Tail...> &from) { return next::of(from.tail); }
};
template <class Tuple>
struct tuple_size;
template <class... Types>
struct tuple_size<tuple<Types...>> {
  static constexpr int value = sizeof...(Types);
};

template <int Number, class... Types>
PK_BOTH typename tuple_element<Number, tuple<Types...>>::type &get(tuple<Types...> &from) {
  return tuple_element<Number, tuple<Types...>>::of(from);
}
template <int Number, class... Types>
PK_BOTH const typename tuple_element<Number, tuple<Types...>>::type &get(const tuple<Types...> &from) {
  return tuple_element<Number, tuple<Types...>>::of(from);
}
template <class... Types>
PK_BOTH tuple<typename pk_detail::plain<Types>::type...> make_tuple(const Types &...values) {
  return tuple<typename pk_detail::plain<Types>::type...>(values...);
}
template <class... Types>
PK_BOTH tuple<Types &...> tie(Types &...values) {
  return tuple<Types &...>(values...);
}
PK_BOTH inline bool operator==(const tuple<> &, const tuple<> &) { return true; }
PK_BOTH inline bool operator<(const tuple<> &, const tuple<> &) { return false; }
template <class Head, class... Tail, class Other, class... Others>
PK_BOTH bool operator==(const tuple<Head, Tail...> &a, const tuple<Other, Others...> &b) {
  return a.head == b.head && a.tail == b.tail;
}
template <class Head, class... Tail, class Other, class... Others>
PK_BOTH bool operator!=(const tuple<Head, Tail...> &a, const tuple<Other, Others...> &b) {
  return !(a == b);
}
template <class Head, class... Tail, class Other, class... Others>
PK_BOTH bool operator<(const tuple<Head, Tail...> &a, const tuple<Other, Others...> &b) {
  return a.head < b.head || (!(b.head < a.head) && a.tail < b.tail);
}

namespace pk_detail {
template <int... Numbers>
struct numbers {};
template <int Count, int... Numbers>
struct make_numbers : make_numbers<Count - 1, Count - 1, Numbers...> {};
template <int... Numbers>
struct make_numbers<0, Numbers...> {
  typedef numbers<Numbers...> type;
};
}  // namespace pk_detail

}  // namespace thrust
