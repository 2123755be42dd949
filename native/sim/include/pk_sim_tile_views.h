// pk_sim_tile_views.h: arrays as tensors with extents and strides, and their partition into tiles. What a tile reads
// past the end is poison, and a finding in a checked image; what it writes there ends the kernel. The masked forms
// leave it out, but a tile of which nothing is inside is undefined on a GPU: it reads poison, writes nothing, and is a
// finding.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

// ---- layouts: how far apart neighbours along each dimension lie
template <class Extents, class Strides>
struct layout_strided_mapping {
  using extents_type = Extents;
  static_assert(Extents::rank() == Strides::rank(), "a stride for each dimension");
  layout_strided_mapping(const Extents &extents, const Strides &strides) noexcept
      : extents_(extents), strides_(strides) {}
  const Extents &extents() const noexcept { return extents_; }
  auto stride(size_t i) const noexcept { return strides_.value[i]; }

 private:
  Extents extents_;
  Strides strides_;
};
namespace sim {
// Dense, but for one dimension that may be padded to `padded`. Last: the last dimension has stride 1, else the first.
template <class Extents, bool Last>
struct dense_mapping {
  using extents_type = Extents;
  explicit dense_mapping(const Extents &extents, size_t padded = 0) noexcept : extents_(extents), padded_(padded) {}
  const Extents &extents() const noexcept { return extents_; }
  typename Extents::index_type stride(size_t i) const noexcept {
    constexpr size_t rank = Extents::rank();
    size_t result = 1;
    for (size_t j = Last ? i + 1 : 0; j < (Last ? rank : i); ++j)
      result *= padded_ && j == (Last ? rank - 1 : 0) ? padded_ : (size_t)extents_.extent(j);
    return (typename Extents::index_type)result;
  }

 private:
  Extents extents_;
  size_t padded_;
};
}  // namespace sim
template <class Extents>
struct layout_right_mapping : sim::dense_mapping<Extents, true> {
  explicit layout_right_mapping(const Extents &extents) noexcept : sim::dense_mapping<Extents, true>(extents) {}
};
template <class Extents>
struct layout_left_mapping : sim::dense_mapping<Extents, false> {
  explicit layout_left_mapping(const Extents &extents) noexcept : sim::dense_mapping<Extents, false>(extents) {}
};
struct layout_right {
  template <class Extents>
  using mapping = layout_right_mapping<Extents>;
};
struct layout_left {
  template <class Extents>
  using mapping = layout_left_mapping<Extents>;
};

template <class T, class Mapping>
struct tensor_span {
  using element_type = T;
  using value_type = sim::plain<T>;
  using mapping_type = Mapping;
  using extents_type = typename Mapping::extents_type;
  using index_type = typename extents_type::index_type;
  using rank_type = size_t;
  tensor_span(T *data, const Mapping &mapping) noexcept : data_(data), mapping_(mapping) {}
  template <class Layout = layout_right>
  tensor_span(T *data, const extents_type &extents, const Layout & = {}) noexcept : data_(data), mapping_(extents) {}
  static constexpr size_t rank() noexcept { return extents_type::rank(); }
  static constexpr size_t rank_dynamic() noexcept { return extents_type::rank_dynamic(); }
  static constexpr size_t static_extent(size_t i) noexcept { return extents_type::static_extent(i); }
  const extents_type &extents() const noexcept { return mapping_.extents(); }
  index_type extent(size_t i) const noexcept { return extents().extent(i); }
  const Mapping &mapping() const noexcept { return mapping_; }
  T *data_handle() const noexcept { return data_; }

 private:
  T *data_;
  Mapping mapping_;
};
template <class T, class Mapping>
requires requires { typename Mapping::extents_type; }
tensor_span(T *, const Mapping &)->tensor_span<T, Mapping>;
template <class T, class I, size_t... E>
tensor_span(T *, const extents<I, E...> &) -> tensor_span<T, layout_right_mapping<extents<I, E...>>>;
template <class T, class I, size_t... E, class Layout>
tensor_span(T *, const extents<I, E...> &, const Layout &)
    -> tensor_span<T, typename Layout::template mapping<extents<I, E...>>>;

namespace sim {
// An index, and where the call with it stands.
struct index_here {
  long long value;
  const char *file;
  int line;
  template <class T>
  requires(is_integer<plain<element<T>>>) index_here(const T &index, PK_SIM_HERE)
      : value((long long)index), file(pk_sim_file), line(pk_sim_line) {}
};
constexpr size_t kMostDimensions = 8;
// Where a tile lies in a tensor: element 0 is at `first` along each dimension. tile: its index in the view.
struct window {
  long long tile[kMostDimensions], first[kMostDimensions], extent[kMostDimensions], stride[kMostDimensions];
  const char *file;
  int line;
};

[[noreturn]] PK_SIM_NOINLINE void outside(const window &of, size_t dimension, long long index, bool writes) {
#ifdef PK_SIM_CHECK
  static char text[100];
  write_text(text, sizeof text, "a tensor_span whose dimension %d has %lld elements", (int)dimension,
             of.extent[dimension]);
  pk_sim_checker.index(text, index, of.file, of.line, 0);
#endif
  refuse(of.file, of.line,
         "a tile is %s past the end of its tensor: index %lld of %lld elements in dimension %d; use %s,",
         writes ? "stored" : "loaded", index, of.extent[dimension], (int)dimension,
         writes ? "store_masked" : "load_masked");
}
#ifdef PK_SIM_CHECK
[[noreturn]] PK_SIM_NOINLINE void wholly_outside(const window &of, size_t dimension, bool writes) {
  static char text[160];
  write_text(text, sizeof text,
             "a tensor_span whose dimension %d has %lld elements: tile %lld along it lies wholly outside, where "
             "%s is undefined",
             (int)dimension, of.extent[dimension], of.tile[dimension], writes ? "store_masked" : "load_masked");
  pk_sim_checker.index(text, of.first[dimension], of.file, of.line, 0);
  __builtin_unreachable();
}
#endif
PK_SIM_TILE_EACH bool inside(const window &of, size_t dimension, long long index) {
  return index >= 0 && index < of.extent[dimension];
}
// Calls row(place in the tile, address, first and end of what is inside) for each row of the tile that is not wholly
// outside. Whole: everything must be inside.
template <class S, bool Whole, bool Writes, class E, class F>
PK_SIM_TILE_EACH void walk_rows(E *data, const window &of, F row) {
  constexpr steps_of<S> steps;
  constexpr size_t rank = steps.rank, last = rank - 1;
  constexpr long long width = steps.extent[last];
  for (size_t at = 0; at < size_of<S>; at += width) {
    long long place = of.first[last] * of.stride[last];
    bool within = true;
    for (size_t i = 0; i < last; ++i) {
      const long long index = of.first[i] + (long long)(at / steps.step[i] % steps.extent[i]);
      within = within && inside(of, i, index);
      if constexpr (Whole)
        if (!inside(of, i, index)) outside(of, i, index, Writes);
      place += index * of.stride[i];
    }
    long long begin = of.first[last] < 0 ? -of.first[last] : 0, end = of.extent[last] - of.first[last];
    end = end < width ? end : width;
    begin = begin < end ? begin : end;
    if constexpr (Whole)
      if (begin > 0 || end < width) outside(of, last, of.first[last] + (begin > 0 || end < 0 ? 0 : end), Writes);
    if (within && begin < end) row(at, data + place, begin, end);
  }
}
template <class S, class E>
PK_SIM_TILE_LOOP void read_window(E *to, const E *data, const window &of) {
  const long long step = of.stride[S::rank() - 1];
  walk_rows<S, false, false>(
      data, of, [&](size_t at, const E *from, long long begin, long long end) PK_SIM_TILE_LAMBDA {
        if (step == 1) {
          told(from + begin, (end - begin) * sizeof(E), false, of.file, of.line);
          __builtin_memcpy((void *)(to + at + begin), (const void *)(from + begin), (end - begin) * sizeof(E));
        } else {
          for (long long i = begin; i < end; ++i) {
            told(from + i * step, sizeof(E), false, of.file, of.line);
            to[at + i] = from[i * step];
          }
        }
      });
}
template <class S, bool Whole, class E>
PK_SIM_TILE_LOOP void write_window(E *data, const E *from, const window &of) {
  const long long step = of.stride[S::rank() - 1];
  walk_rows<S, Whole, true>(data, of, [&](size_t at, E *to, long long begin, long long end) PK_SIM_TILE_LAMBDA {
    if (step == 1) {
      told(to + begin, (end - begin) * sizeof(E), true, of.file, of.line);
      __builtin_memcpy((void *)(to + begin), (const void *)(from + at + begin), (end - begin) * sizeof(E));
    } else {
      for (long long i = begin; i < end; ++i) {
        told(to + i * step, sizeof(E), true, of.file, of.line);
        to[i * step] = from[at + i];
      }
    }
  });
}
#ifdef PK_SIM_CHECK
// Ends the kernel where the tile is not wholly inside.
template <class S, class E>
PK_SIM_TILE_LOOP void demand_inside(const E *data, const window &of) {
  walk_rows<S, true, false>(data, of, [](size_t, const E *, long long, long long) PK_SIM_TILE_LAMBDA {});
}
#endif
// Whether some of the tile is inside; in a checked image the kernel ends where nothing is.
template <class S>
bool partly_inside(const window &of, [[maybe_unused]] bool writes) {
  for (size_t i = 0; i < S::rank(); ++i) {
    if (of.first[i] < of.extent[i] && of.first[i] + (long long)S::static_extent(i) > 0) continue;
#ifdef PK_SIM_CHECK
    wholly_outside(of, i, writes);
#endif
    return false;
  }
  return true;
}

template <class E, view_padding Padding>
E filler() {
  static_assert(is_float<E> || Padding == view_padding::zero, "integers are padded with zeros");
  if constexpr (Padding == view_padding::zero)
    return convert<E>(0.0f);
  else if constexpr (Padding == view_padding::negative_zero)
    return convert<E>(-0.0f);
  else if constexpr (Padding == view_padding::positive_inf)
    return convert<E>(__builtin_inff());
  else if constexpr (Padding == view_padding::negative_inf)
    return convert<E>(-__builtin_inff());
  else
    return convert<E>(__builtin_nanf(""));
}

// What the views of a tensor share; the view says by first_of(dimension, index) where the tile of an index begins.
template <class View, class Span, class Shape>
struct tile_view {
  static_assert(Span::rank() == Shape::rank() && Shape::rank() > 0 && Shape::rank() <= kMostDimensions,
                "a view's tiles have the dimensions of its tensor");
  using span_type = Span;
  using view_shape_type = plain<Shape>;
  using element_type = typename Span::element_type;
  using view_tile_type = tile<plain<element_type>, view_shape_type>;
  const Span &span() const noexcept { return span_; }

  template <class... I>
  view_tile_type load(index_here first, I... rest) const noexcept {
    const window of = window_at(first, rest...);
#ifdef PK_SIM_CHECK
    demand_inside<view_shape_type>(span_.data_handle(), of);
#endif
    elements<E> result(count);
    poison(result.at(), count);
    read_window<view_shape_type>(result.at(), span_.data_handle(), of);
    return view_tile_type(result);
  }
  template <class... I>
  view_tile_type load_masked(index_here first, I... rest) const noexcept {
    return load_masked(default_view_padding_t{}, first, rest...);
  }
  template <view_padding Padding, class... I>
  view_tile_type load_masked(view_padding_constant<Padding>, index_here first, I... rest) const noexcept {
    const window of = window_at(first, rest...);
    if (!partly_inside<view_shape_type>(of, false)) return {};
    const view_tile_type result = full<view_tile_type>(filler<E, Padding>());
    read_window<view_shape_type>(result.pk_sim_elements().at(), (const E *)span_.data_handle(), of);
    return result;
  }
  template <tile_like Value, class... I>
  void store(const Value &value, index_here first, I... rest) const noexcept {
    write<true>(value, window_at(first, rest...));
  }
  template <tile_like Value, class... I>
  void store_masked(const Value &value, index_here first, I... rest) const noexcept {
    const window of = window_at(first, rest...);
    if (partly_inside<view_shape_type>(of, true)) write<false>(value, of);
  }

 protected:
  using E = plain<element_type>;
  static constexpr size_t count = size_of<view_shape_type>;
  explicit tile_view(const Span &span) : span_(span) {}
  Span span_;

 private:
  template <class... I>
  window window_at(index_here first, I... rest) const {
    static_assert(1 + sizeof...(I) == Span::rank(), "an index for each dimension of the tensor");
    const long long each[] = {first.value, (long long)rest...};
    window result;
    for (size_t i = 0; i < Span::rank(); ++i) {
      result.tile[i] = each[i];
      result.first[i] = static_cast<const View *>(this)->first_of(i, each[i]);
      result.extent[i] = (long long)span_.extent(i);
      result.stride[i] = (long long)span_.mapping().stride(i);
    }
    result.file = first.file, result.line = first.line;
    return result;
  }
  template <bool Whole, class Value>
  void write(const Value &value, const window &of) const {
    static_assert(same<plain<element_type>, element_type>, "a view of const elements cannot be stored to");
    static_assert(same<shape_of<Value>, view_shape_type>, "a view stores tiles of its own shape: ct::reshape first");
    static_assert(!narrows<element<Value>, E>(), "cast the tile to the array's type with ct::element_cast");
    write_window<view_shape_type, Whole>(span_.data_handle(), view_tile_type(value).pk_sim_at(), of);
  }
};
}  // namespace sim

// A tensor in tiles side by side: tile i along a dimension begins at i times its extent.
template <class Span, class Shape>
struct partition_view : sim::tile_view<partition_view<Span, Shape>, Span, Shape> {
  partition_view(const Span &span, Shape) noexcept : sim::tile_view<partition_view<Span, Shape>, Span, Shape>(span) {}
  static long long first_of(size_t dimension, long long index) noexcept {
    return index * (long long)Shape::static_extent(dimension);
  }
};

// Tiles that begin `strides` apart, from `offsets` on: they may overlap, or leave gaps.
template <class Span, class Shape, class Strides, class Offsets = shape<>>
struct strided_view : sim::tile_view<strided_view<Span, Shape, Strides, Offsets>, Span, Shape> {
  strided_view(const Span &span, Shape, const Strides &strides, const Offsets &offsets = {}) noexcept
      : sim::tile_view<strided_view<Span, Shape, Strides, Offsets>, Span, Shape>(span),
        strides_(strides),
        offsets_(offsets) {}
  long long first_of(size_t dimension, long long index) const noexcept {
    const long long offset = Offsets::rank() ? (long long)offsets_.value[dimension] : 0;
    return offset + index * (long long)strides_.value[dimension];
  }

 private:
  Strides strides_;
  Offsets offsets_;
};

}  // namespace cuda::tiles
