"""A use of each of libcu++'s headers that the simulated device has, and its value."""

from __future__ import annotations

# By header: code that sets an int `o`, and the value.
USES = {
    "cuda/std/type_traits": (
        "using namespace cuda::std; static_assert(is_same_v<remove_cvref_t<const int &>, int>);"
        "static_assert(is_floating_point<float>::value && !is_integral_v<float> && is_pointer_v<int *const>);"
        "static_assert(is_same<conditional_t<true, char, int>, char>::value && is_unsigned_v<unsigned char>);"
        "static_assert(is_same_v<make_unsigned_t<int>, unsigned> && is_convertible_v<int, float>);"
        "static_assert(is_same_v<decay_t<int[3]>, int *> && is_same_v<common_type_t<int, float>, float>);"
        "static_assert(!is_convertible_v<float *, int> && is_array_v<int[2]> && is_base_of_v<A, B>);"
        "o = sizeof(enable_if_t<is_class_v<A>, short>);", 2,
    ),
    "cuda/std/limits": (
        "o = cuda::std::numeric_limits<int>::max() == 0x7fffffff && cuda::std::numeric_limits<char>::lowest() == -128"
        " && cuda::std::numeric_limits<unsigned long long>::max() == ~0ull"
        " && cuda::std::numeric_limits<float>::infinity() > cuda::std::numeric_limits<float>::max()"
        " && cuda::std::numeric_limits<double>::epsilon() == 1.0 / (1ll << 52);", 1,
    ),
    "cuda/std/cstdint": ("cuda::std::uint8_t a = 300; cuda::std::int64_t b = 1ll << 40; o = a + (b >> 38);", 48),
    "cuda/std/utility": (
        "int a = 1, b = 2; cuda::std::swap(a, b); auto p = cuda::std::make_pair(a, 3.0f);"
        "o = 10 * p.first + (int)p.second + cuda::std::exchange(b, 7) + b;", 31,
    ),
    "cuda/std/algorithm": (
        "int a[6] = {1, 3, 5, 7, 9, 11}, b[6];"
        "o = cuda::std::min(3, 5) + cuda::std::max(7, 2) + cuda::std::clamp(9, 0, 4) "
        "+ 100 * (int)(cuda::std::lower_bound(a, a + 6, 6) - a); cuda::std::rotate(a, a + 2, a + 6);"
        "o += 1000 * a[5] + 10000 * (int)(cuda::std::max_element(a, a + 6) - a);"
        "cuda::std::copy_if(a, a + 6, b, [](int x) { return x > 4; }); cuda::std::reverse(b, b + 4);"
        "o += 100000 * b[3] + 1000000 * (int)cuda::std::count(a, a + 6, 3) + 10000000 * cuda::std::all_of(a, a + 6,"
        " [](int x) { return x & 1; }); cuda::std::fill_n(b, 3, 2);"
        "o += 100000000 * cuda::std::equal(b, b + 2, b + 1);", 111533314,
    ),
    "cuda/std/functional": (
        "o = cuda::std::plus<int>()(1, 2) + cuda::std::multiplies<>()(3, 4) + cuda::std::less<int>()(1, 2);", 16,
    ),
    "cuda/std/bit": (
        "o = cuda::std::popcount(255u) + cuda::std::countl_zero(1u) + cuda::std::countr_zero(8ull)"
        " + cuda::std::bit_width(9u) + (cuda::std::bit_cast<unsigned>(1.0f) == 0x3f800000u)"
        " + (int)cuda::std::rotl(0x80000001u, 1) + cuda::std::has_single_bit(64u);", 8 + 31 + 3 + 4 + 1 + 3 + 1,
    ),
    "cuda/std/cmath": ("o = (int)(cuda::std::sqrt(16.0f) + cuda::std::floor(2.5) + cuda::std::abs(-3.0f));", 9),
    "cuda/cmath": (
        "o = cuda::ceil_div(10, 4) + 10 * cuda::round_up(5, 4) + 100 * cuda::ilog2(9u)"
        " + 1000 * cuda::is_power_of_two(8) + 10000 * cuda::isqrt(35) + 100000 * (int)cuda::next_power_of_two(5u)"
        " + 1000000 * cuda::round_down(7, 3);",
        6851383,
    ),
    "cuda/std/array": (
        "cuda::std::array<int, 3> a = {1, 2, 3}; for (int x : a) o += x; o += a.size() + a.back() + a[0];", 13,
    ),
    "cuda/std/span": (
        "int a[4] = {1, 2, 3, 4}; cuda::std::span<int> s(a, 4); for (int x : s.subspan(1)) o += x; o += s.size();", 13,
    ),
    "cuda/std/optional": (
        "cuda::std::optional<int> a = 3, b = cuda::std::nullopt; o = *a + b.value_or(4) + 10 * b.has_value();", 7,
    ),
    "cuda/std/tuple": (
        "auto t = cuda::std::make_tuple(1, 2.5f, 'a'); cuda::std::get<0>(t) = 5;"
        "o = cuda::std::get<0>(t) + (int)(2 * cuda::std::get<1>(t)) + cuda::std::tuple_size_v<decltype(t)>;"
        "auto [x, y, z] = t; int u; float v; cuda::std::tie(u, v) = cuda::std::make_tuple(x, y); o += 100 * u"
        " + 1000 * (z == 'a') + 10000 * (t < cuda::std::make_tuple(6, 0.0f, 'a')) + 100000 * cuda::std::apply("
        "[](auto... all) { return (int)sizeof...(all); }, t) + cuda::std::get<1>(cuda::std::make_pair(1, 7));",
        311520,
    ),
    "cuda/std/complex": (
        "cuda::std::complex<float> z(3.0f, 4.0f), w = z * cuda::std::conj(z); z *= z;"
        "o = (int)(w.real() + cuda::std::abs(cuda::std::complex<float>(3.0f, 4.0f)) + z.imag());", 54,
    ),
    "cuda/std/atomic": ("cuda::std::atomic<int> a(3); a += 4; o = a.fetch_add(1) + a.load() + a.exchange(0);", 23),
    "cuda/atomic": (
        "int x = 5; cuda::atomic_ref<int> r(x); r.fetch_max(9); int seen = 9;"
        "o = r.compare_exchange_strong(seen, 2) + x; cuda::atomic_thread_fence(cuda::memory_order_release);", 3,
    ),
    "cuda/std/iterator": (
        "int a[4] = {1, 2, 3, 4}; auto back = cuda::std::make_reverse_iterator(a + 4); o = *back + 10 * back[2]"
        " + 100 * *cuda::std::next(a, 2) + 1000 * (int)cuda::std::distance(a, cuda::std::prev(a + 4));"
        "cuda::std::advance(back, 1); o += 10000 * *back + 100000 * (int)cuda::std::size(a);", 433324,
    ),
    "cuda/std/numeric": (
        "int a[5], b[5]; cuda::std::iota(a, a + 5, 2); cuda::std::exclusive_scan(a, a + 5, b, 1);"
        "o = cuda::std::accumulate(a, a + 5, 0) + 100 * b[4] + 10000 * cuda::std::gcd(12, -18);"
        "cuda::std::adjacent_difference(a, a + 5, b); o += b[3]; cuda::std::partial_sum(a, a + 5, a);"
        "o += 100000 * cuda::std::inner_product(a, a + 2, b, 0) + 1000000 * cuda::std::midpoint(3, 9)"
        " + 10000000 * cuda::std::lcm(4, 6) + cuda::std::reduce(a, a + 2);", 120000000 + 6000000 + 900000 + 61528,
    ),
    "cuda/std/concepts": (
        "o = cuda::std::integral<int> + 2 * cuda::std::floating_point<int> + 4 * cuda::std::same_as<int, int>"
        " + 8 * cuda::std::unsigned_integral<int> + 16 * cuda::std::convertible_to<int, float>;", 21,
    ),
    "cuda/std/numbers": (
        "o = (int)(1000 * cuda::std::numbers::pi_v<float>) + (int)(10 * cuda::std::numbers::e);", 3168,
    ),
    "cuda/std/memory": ("int a = 3; *cuda::std::addressof(a) = 4; o = a;", 4),
    "cuda/std/mdspan": (
        "int a[24]; for (int i = 0; i < 24; ++i) a[i] = i; cuda::std::mdspan m(a, 2, 3, 4);"
        "cuda::std::mdspan<int, cuda::std::extents<int, 2, cuda::std::dynamic_extent>, cuda::std::layout_left> l(a, 5);"
        "cuda::std::mdspan<int, cuda::std::dextents<int, 2>, cuda::std::layout_stride> s(a, cuda::std::layout_stride::"
        "mapping<cuda::std::dextents<int, 2>>(cuda::std::dextents<int, 2>(2, 2), cuda::std::array<int, 2>{10, 3}));"
        "o = m(1, 2, 3) + 100 * l(1, 3) + 10000 * s(1, 1) + 1000000 * (int)(m.size() + m.stride(1) + l.extent(1));"
        "m(0, 0, 1) = 7; o += a[1] + (int)(l.static_extent(0) + m.rank_dynamic());", 33130735,
    ),
    "cuda/std/variant": (
        "cuda::std::variant<int, float, A> v = 2.5f; o = v.index() + 10 * cuda::std::holds_alternative<float>(v)"
        " + (int)(100 * cuda::std::get<float>(v)); v = 7; o += 1000 * *cuda::std::get_if<0>(&v)"
        " + 10000 * (cuda::std::get_if<A>(&v) == nullptr); cuda::std::variant<int, char> w = 'c';"
        "o += 100000 * cuda::std::visit([](auto a, auto b) { return (int)(sizeof(a) * 10 + sizeof(b)); }, w, w);",
        1117261,
    ),
    "cuda/std/expected": (
        "cuda::std::expected<int, char> a = 3, b = cuda::std::unexpected('x'); o = *a + b.value_or(9) + b.error();"
        "o += 1000 * a.has_value() + 2000 * b.has_value();", 1132,
    ),
    "cuda/std/inplace_vector": (
        "cuda::std::inplace_vector<int, 3> v; v.push_back(4); v.push_back(5); v.back() += 2; v.emplace_back(1);"
        "o = v.size() + 10 * !v.try_push_back(3); for (int x : v) o += 100 * x; v.pop_back();"
        "o += v.size();", 1215,
    ),
    "cuda/std/bitset": (
        "cuda::std::bitset<70> b(5); b.set(69); b[3] = true; o = b.count() + 10 * b.test(69) + 100 * (b << 1).count()"
        " + 1000 * (~b).count() + 100000 * (b & cuda::std::bitset<70>(12)).to_ulong();", 1266314,
    ),
    "cuda/functional": (
        "auto f = cuda::proclaim_return_type<int>([](int a) { return a + 1; });"
        "o = f(2) + 10 * cuda::maximum<>{}(3, 4) + 100 * cuda::minimum<int>{}(3, 4);", 343,
    ),
    "cuda/bit": (
        "o = (cuda::bit_reverse(1u) == 0x80000000u) + 10 * (int)cuda::bitmask<unsigned>(2, 3)"
        " + 1000 * (int)cuda::bitfield_extract(0xabcdu, 4, 4) + 100000 * (int)cuda::bitfield_insert(0u, 3u, 1, 2);",
        612281,
    ),
    "nv/target": (
        "NV_IF_TARGET(NV_IS_DEVICE, (o = 1;), (o = 2;)) NV_IF_ELSE_TARGET(NV_PROVIDES_SM_80, (o += 10;), (o += 20;))"
        "NV_DISPATCH_TARGET(NV_IS_EXACTLY_SM_80, (o += 100;), NV_PROVIDES_SM_90, (o += 200;), NV_ANY_TARGET,"
        " (o += 300;)) NV_IF_TARGET(NV_IS_HOST, (o = -1;))", 211,
    ),
}  # fmt: skip
