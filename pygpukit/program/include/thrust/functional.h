// functional.h: function objects of both sides, and placeholders: _1 + 2 * _2.
#pragma once
#include "tuple.h"

#define PK_THRUST_BINARY(name, ...)                                                                 \
  template <class Value = void>                                                                     \
  struct name {                                                                                     \
    typedef Value result_type;                                                                      \
    typedef Value first_argument_type;                                                              \
    typedef Value second_argument_type;                                                             \
    PK_BOTH constexpr auto operator()(const Value &a, const Value &b) const { return __VA_ARGS__; } \
  };                                                                                                \
  template <>                                                                                       \
  struct name<void> {                                                                               \
    template <class First, class Second>                                                            \
    PK_BOTH constexpr auto operator()(const First &a, const Second &b) const {                      \
      return __VA_ARGS__;                                                                           \
    }                                                                                               \
  }
#define PK_THRUST_UNARY(name, ...)                                                  \
  template <class Value = void>                                                     \
  struct name {                                                                     \
    typedef Value result_type;                                                      \
    typedef Value argument_type;                                                    \
    PK_BOTH constexpr auto operator()(const Value &a) const { return __VA_ARGS__; } \
  };                                                                                \
  template <>                                                                       \
  struct name<void> {                                                               \
    template <class First>                                                          \
    PK_BOTH constexpr auto operator()(const First &a) const {                       \
      return __VA_ARGS__;                                                           \
    }                                                                               \
  }

namespace thrust {

PK_THRUST_BINARY(plus, a + b);
PK_THRUST_BINARY(minus, a - b);
PK_THRUST_BINARY(multiplies, a *b);
PK_THRUST_BINARY(divides, a / b);
PK_THRUST_BINARY(modulus, a % b);
PK_THRUST_BINARY(maximum, a < b ? b : a);
PK_THRUST_BINARY(minimum, b < a ? b : a);
PK_THRUST_BINARY(equal_to, a == b);
PK_THRUST_BINARY(not_equal_to, a != b);
PK_THRUST_BINARY(greater, b < a);
PK_THRUST_BINARY(less, a < b);
PK_THRUST_BINARY(greater_equal, !(a < b));
PK_THRUST_BINARY(less_equal, !(b < a));
PK_THRUST_BINARY(logical_and, a &&b);
PK_THRUST_BINARY(logical_or, a || b);
PK_THRUST_BINARY(bit_and, a &b);
PK_THRUST_BINARY(bit_or, a | b);
PK_THRUST_BINARY(bit_xor, a ^ b);
PK_THRUST_BINARY(project1st, a);
PK_THRUST_BINARY(project2nd, b);
PK_THRUST_UNARY(negate, -a);
PK_THRUST_UNARY(square, a *a);
PK_THRUST_UNARY(logical_not, !a);
PK_THRUST_UNARY(bit_not, ~a);
PK_THRUST_UNARY(identity, a);

template <class Test>
struct unary_negate {
  Test test;
  template <class Value>
  PK_BOTH bool operator()(const Value &value) {
    return !test(value);
  }
};
template <class Test>
PK_BOTH unary_negate<Test> not_fn(Test test) {
  return unary_negate<Test>{test};
}
template <class Test>
PK_BOTH unary_negate<Test> not1(Test test) {
  return unary_negate<Test>{test};
}

// f(a, b) as a function of a tuple.
template <class Function>
struct zip_function {
  Function function;
  template <class... Types, int... Numbers>
  PK_BOTH auto with(const tuple<Types...> &values, pk_detail::numbers<Numbers...>) {
    return function(thrust::get<Numbers>(values)...);
  }
  template <class... Types>
  PK_BOTH auto operator()(const tuple<Types...> &values) {
    return with(values, typename pk_detail::make_numbers<sizeof...(Types)>::type());
  }
};
template <class Function>
PK_BOTH zip_function<Function> make_zip_function(Function function) {
  return zip_function<Function>{function};
}

// ---- placeholders: what is made of them is a tree of nodes
namespace pk_detail {
template <int Number>
struct argument {
  template <class First>
  PK_BOTH constexpr auto operator()(const First &first) const {
    static_assert(Number == 0, "a placeholder names an argument that the algorithm does not give");
    return first;
  }
  template <class First, class Second>
  PK_BOTH constexpr auto operator()(const First &first, const Second &second) const {
    if constexpr (Number == 0)
      return first;
    else
      return second;
  }
};
template <class Value>
struct constant {
  Value value;
  template <class... Arguments>
  PK_BOTH constexpr Value operator()(const Arguments &...) const {
    return value;
  }
};
template <class Function, class Left, class Right>
struct combined {
  Left left;
  Right right;
  template <class... Arguments>
  PK_BOTH constexpr auto operator()(const Arguments &...arguments) const {
    return Function()(left(arguments...), right(arguments...));
  }
};
template <class Value>
struct node_of {
  static constexpr bool is_node = false;
  typedef constant<Value> type;
};
template <int Number>
struct node_of<argument<Number>> {
  static constexpr bool is_node = true;
  typedef argument<Number> type;
};
template <class Function, class Left, class Right>
struct node_of<combined<Function, Left, Right>> {
  static constexpr bool is_node = true;
  typedef combined<Function, Left, Right> type;
};
template <bool Yes, class Type>
struct only {};
template <class Type>
struct only<true, Type> {
  typedef Type type;
};
template <class Function, class Left, class Right>
using node_t = typename only<node_of<Left>::is_node || node_of<Right>::is_node,
                             combined<Function, typename node_of<Left>::type, typename node_of<Right>::type>>::type;
}  // namespace pk_detail

#define PK_THRUST_NODE(name, symbol)                                                                        \
  template <class Left, class Right>                                                                        \
  PK_BOTH constexpr pk_detail::node_t<name<>, Left, Right> operator symbol(const Left &a, const Right &b) { \
    return {{a}, {b}};                                                                                      \
  }                                                                                                         \
  struct name##_of_nodes

namespace pk_detail {
PK_THRUST_NODE(plus, +);
PK_THRUST_NODE(minus, -);
PK_THRUST_NODE(multiplies, *);
PK_THRUST_NODE(divides, /);
PK_THRUST_NODE(modulus, %);
PK_THRUST_NODE(equal_to, ==);
PK_THRUST_NODE(not_equal_to, !=);
PK_THRUST_NODE(greater, >);
PK_THRUST_NODE(less, <);
PK_THRUST_NODE(greater_equal, >=);
PK_THRUST_NODE(less_equal, <=);
PK_THRUST_NODE(logical_and, &&);
PK_THRUST_NODE(logical_or, ||);
PK_THRUST_NODE(bit_and, &);
PK_THRUST_NODE(bit_or, |);
PK_THRUST_NODE(bit_xor, ^);
template <class Node, class = typename only<node_of<Node>::is_node, Node>::type>
PK_BOTH constexpr combined<minus<>, constant<int>, Node> operator-(const Node &node) {
  return {{0}, node};
}
template <class Node, class = typename only<node_of<Node>::is_node, Node>::type>
PK_BOTH constexpr combined<equal_to<>, constant<bool>, Node> operator!(const Node &node) {
  return {{false}, node};
}
}  // namespace pk_detail
namespace placeholders {
static const pk_detail::argument<0> _1 = {};
static const pk_detail::argument<1> _2 = {};
}  // namespace placeholders

}  // namespace thrust
