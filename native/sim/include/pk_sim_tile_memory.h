// pk_sim_tile_memory.h: reading and writing through tiles of pointers, and atomic updates.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

namespace sim {
// Tells the checker of an access that a kernel makes; nothing in an image that is not checked.
PK_SIM_TILE_EACH void told([[maybe_unused]] const void *address, [[maybe_unused]] size_t bytes,
                           [[maybe_unused]] bool writes, [[maybe_unused]] const char *file, [[maybe_unused]] int line) {
#ifdef PK_SIM_CHECK
  pk_sim_checker.access(address, bytes, writes ? PK_SIM_WRITE : PK_SIM_READ, nullptr, file, line);
#endif
}
template <size_t Count, size_t Step, class E, class M>
PK_SIM_TILE_LOOP void read_each(E *to, const E *const *from, const M *mask, const E *padding, size_t padding_step,
                                const char *file, int line) {
  for (size_t i = 0; i < Count; ++i) {
    if (mask && !(bool)mask[i * Step]) {
      to[i] = padding[i * padding_step];
      continue;
    }
    told(from[i], sizeof(E), false, file, line);
    to[i] = *from[i];
  }
}
template <size_t Count, size_t Step, class E, class M>
PK_SIM_TILE_LOOP void write_each(E *const *to, const E *from, const M *mask, const char *file, int line) {
  for (size_t i = 0; i < Count; ++i) {
    if (mask && !(bool)mask[i * Step]) continue;
    told(to[i], sizeof(E), true, file, line);
    *to[i] = from[i];
  }
}
template <class P>
using loaded = tile_with_element_t<P, plain<pointee<element<P>>>>;
template <class T>
const element<T> *first_of(const T &value) {
  if constexpr (is_tile<T>)
    return value.pk_sim_at();
  else
    return &value;
}
template <class P, class M, class E>
loaded<P> read_masked(const P &pointers, const M *mask, const E &padding, const char *file, int line) {
  using S = shape_of<P>;
  using X = element<loaded<P>>;
  constexpr size_t count = size_of<S>;
  elements<X> result(count);
  const operand<S, P> from(pointers);
  const auto filler = tile<X, shape_of<E>>(padding);
  const operand<S, tile<X, shape_of<E>>> fill(filler);
  if constexpr (same<M, void>)
    read_each<count, 0, X, bool>(result.at(), (const X *const *)from.at(), nullptr, fill.at(), fill.step, file, line);
  else {
    const operand<S, M> which(*mask);
    read_each<count, which.step>(result.at(), (const X *const *)from.at(), which.at(), fill.at(), fill.step, file,
                                 line);
  }
  if constexpr (scalar<P>)
    return result.first();
  else
    return loaded<P>(result);
}
template <class P, class V, class M>
void write_masked(const P &pointers, const V &values, const M *mask, const char *file, int line) {
  using S = shape_of<P>;
  using X = element<loaded<P>>;
  static_assert(same<shape_of<V>, S>, "ct::store: as many values as pointers, in their shape");
  static_assert(!narrows<element<V>, X>(), "ct::store: cast the values to the array's type with ct::element_cast");
  constexpr size_t count = size_of<S>;
  const operand<S, P> to(pointers);
  const auto cast = tile<X, S>(values);
  if constexpr (same<M, void>)
    write_each<count, 0, X, bool>(to.at(), cast.pk_sim_at(), nullptr, file, line);
  else {
    const operand<S, M> which(*mask);
    write_each<count, which.step>(to.at(), cast.pk_sim_at(), which.at(), file, line);
  }
}
}  // namespace sim

template <pointer_tile P>
sim::loaded<P> load(const P &pointers, PK_SIM_HERE) noexcept {
  return sim::read_masked(pointers, (const void *)nullptr, sim::element<sim::loaded<P>>{}, pk_sim_file, pk_sim_line);
}
template <pointer_tile P, tile_like M>
sim::loaded<P> load_masked(const P &pointers, const M &mask, PK_SIM_HERE) noexcept {
  return sim::read_masked(pointers, &mask, sim::convert<sim::element<sim::loaded<P>>>(0.0f), pk_sim_file, pk_sim_line);
}
template <pointer_tile P, tile_like M, tile_like V>
sim::loaded<P> load_masked(const P &pointers, const M &mask, const V &padding, PK_SIM_HERE) noexcept {
  return sim::read_masked(pointers, &mask, padding, pk_sim_file, pk_sim_line);
}
template <pointer_tile P, tile_like V>
void store(const P &pointers, const V &values, PK_SIM_HERE) noexcept {
  sim::write_masked(pointers, values, (const void *)nullptr, pk_sim_file, pk_sim_line);
}
template <pointer_tile P, tile_like V, tile_like M>
void store_masked(const P &pointers, const V &values, const M &mask, PK_SIM_HERE) noexcept {
  sim::write_masked(pointers, values, &mask, pk_sim_file, pk_sim_line);
}

// ---- atomic updates: a pointer after the other; memory orders stronger than asked for
namespace sim {
template <class P, class V, class M, class F>
loaded<P> updated(const P &pointers, const V &values, const M *mask, F change, const char *file, int line) {
  using S = shape_of<P>;
  using X = element<loaded<P>>;
  constexpr size_t count = size_of<S>;
  elements<X> result(count);
  poison(result.at(), count);
  const operand<S, P> to(pointers);
  const auto cast = tile<X, S>(values);
  for (size_t i = 0; i < count; ++i) {
    if constexpr (!same<M, void>)
      if (!(bool)operand<S, M>(*mask).at()[i * operand<S, M>::step]) continue;
    const X value = cast.pk_sim_at()[i];
    result.at()[i] = pk_sim_update(
        to.at()[i], [&](X old) -> X { return change(old, value); }, file, line);
  }
  if constexpr (scalar<P>)
    return result.first();
  else
    return loaded<P>(result);
}
PK_SIM_TILE_FUNCTOR(newer, (T, T b), b)
}  // namespace sim
#define PK_SIM_TILE_ATOMIC(name, functor)                                                                            \
  template <memory_order Order = memory_order::relaxed, thread_scope Scope = thread_scope::device, pointer_tile P,   \
            tile_like V>                                                                                             \
  sim::loaded<P> name(const P &pointers, const V &values, memory_order_constant<Order> = {},                         \
                      thread_scope_constant<Scope> = {}, PK_SIM_HERE) noexcept {                                     \
    using X = sim::element<sim::loaded<P>>;                                                                          \
    return sim::updated(pointers, values, (const void *)nullptr, sim::in<sim::computed<X>, X, sim::functor>{},       \
                        pk_sim_file, pk_sim_line);                                                                   \
  }                                                                                                                  \
  template <memory_order Order = memory_order::relaxed, thread_scope Scope = thread_scope::device, pointer_tile P,   \
            tile_like V, tile_like M>                                                                                \
  sim::loaded<P> name##_masked(const P &pointers, const V &values, const M &mask, memory_order_constant<Order> = {}, \
                               thread_scope_constant<Scope> = {}, PK_SIM_HERE) noexcept {                            \
    using X = sim::element<sim::loaded<P>>;                                                                          \
    return sim::updated(pointers, values, &mask, sim::in<sim::computed<X>, X, sim::functor>{}, pk_sim_file,          \
                        pk_sim_line);                                                                                \
  }
PK_SIM_TILE_ATOMIC(atomic_add, add)
PK_SIM_TILE_ATOMIC(atomic_sub, subtract)
PK_SIM_TILE_ATOMIC(atomic_max, larger)
PK_SIM_TILE_ATOMIC(atomic_min, smaller)
PK_SIM_TILE_ATOMIC(atomic_and, bit_and)
PK_SIM_TILE_ATOMIC(atomic_or, bit_or)
PK_SIM_TILE_ATOMIC(atomic_xor, bit_xor)
PK_SIM_TILE_ATOMIC(atomic_xchg, newer)
#undef PK_SIM_TILE_ATOMIC

}  // namespace cuda::tiles
