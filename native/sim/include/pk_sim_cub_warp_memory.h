// pk_sim_cub_warp_memory.h: CUB's WarpExchange, WarpLoad and WarpStore.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub_memory.h"
#include "pk_sim_cub_warp.h"

namespace cub {

enum WarpExchangeAlgorithm { WARP_EXCHANGE_SMEM, WARP_EXCHANGE_SHUFFLE };

template <class T, int Items, int Width = 32, WarpExchangeAlgorithm Algorithm = WARP_EXCHANGE_SMEM>
class WarpExchange {
  typedef pk_sim_cub_lanes<T, Width> Lanes;

 public:
  struct TempStorage {
    pk_sim_cub_room<T, Width * Items> values;
  };

 private:
  TempStorage &room;
  const int lane = Lanes::lane();

  int blocked(int i) const { return lane * Items + i; }
  int striped(int i) const { return i * Width + lane; }
  template <class Out, class From, class To>
  void move(const T (&in)[Items], Out (&out)[Items], From from, To to, const char *file, int line) {
    for (int i = 0; i < Items; ++i) room.values[from(i)] = in[i];
    __syncwarp(Lanes::mask(), file, line);
    for (int i = 0; i < Items; ++i) out[i] = room.values[to(i)];
  }

 public:
  explicit WarpExchange(TempStorage &room) : room(room) {}

  template <class Out>
  void BlockedToStriped(const T (&in)[Items], Out (&out)[Items], PK_SIM_HERE) {
    move(
        in, out, [this](int i) { return blocked(i); }, [this](int i) { return striped(i); }, pk_sim_file, pk_sim_line);
  }
  template <class Out>
  void StripedToBlocked(const T (&in)[Items], Out (&out)[Items], PK_SIM_HERE) {
    move(
        in, out, [this](int i) { return striped(i); }, [this](int i) { return blocked(i); }, pk_sim_file, pk_sim_line);
  }
  template <class Out, class Rank>
  void ScatterToStriped(const T (&in)[Items], Out (&out)[Items], Rank (&ranks)[Items], PK_SIM_HERE) {
    move(
        in, out, [&](int i) { return (int)ranks[i]; }, [this](int i) { return striped(i); }, pk_sim_file, pk_sim_line);
  }
  template <class Rank>
  void ScatterToStriped(T (&items)[Items], Rank (&ranks)[Items], PK_SIM_HERE) {
    ScatterToStriped(items, items, ranks, pk_sim_file, pk_sim_line);
  }
};

enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };

template <class T, int Items, int Width>
struct pk_sim_cub_warp_mover {
  typedef WarpExchange<T, Items, Width> Exchange;
  typedef typename Exchange::TempStorage TempStorage;
  TempStorage &room;
  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
};

template <class T, int Items, WarpLoadAlgorithm Algorithm = WARP_LOAD_DIRECT, int Width = 32>
class WarpLoad : pk_sim_cub_warp_mover<T, Items, Width> {
  typedef pk_sim_cub_warp_mover<T, Items, Width> Mover;

  template <class From, class... More>
  void run(From from, T (&items)[Items], const char *file, int line, More... more) {
    const int lane = pk_sim_cub_lanes<T, Width>::lane();
    if constexpr (Algorithm == WARP_LOAD_DIRECT || Algorithm == WARP_LOAD_VECTORIZE) {
      LoadDirectBlocked(lane, from, items, more...);
    } else {
      LoadDirectStriped<Width>(lane, from, items, more...);
      if constexpr (Algorithm == WARP_LOAD_TRANSPOSE)
        typename Mover::Exchange(this->room).StripedToBlocked(items, items, file, line);
    }
  }

 public:
  using typename Mover::TempStorage;
  WarpLoad() : Mover{Mover::own()} {}
  WarpLoad(TempStorage &room) : Mover{room} {}

  template <class From>
  void Load(From from, T (&items)[Items], PK_SIM_HERE) {
    run(from, items, pk_sim_file, pk_sim_line);
  }
  template <class From>
  void Load(From from, T (&items)[Items], int valid, PK_SIM_HERE) {
    run(from, items, pk_sim_file, pk_sim_line, valid);
  }
  template <class From, class Default>
  void Load(From from, T (&items)[Items], int valid, Default other, PK_SIM_HERE) {
    run(from, items, pk_sim_file, pk_sim_line, valid, other);
  }
};

template <class T, int Items, WarpStoreAlgorithm Algorithm = WARP_STORE_DIRECT, int Width = 32>
class WarpStore : pk_sim_cub_warp_mover<T, Items, Width> {
  typedef pk_sim_cub_warp_mover<T, Items, Width> Mover;

  template <class To, class... More>
  void run(To to, T (&items)[Items], const char *file, int line, More... more) {
    const int lane = pk_sim_cub_lanes<T, Width>::lane();
    if constexpr (Algorithm == WARP_STORE_DIRECT || Algorithm == WARP_STORE_VECTORIZE) {
      StoreDirectBlocked(lane, to, items, more...);
    } else {
      if constexpr (Algorithm == WARP_STORE_TRANSPOSE)
        typename Mover::Exchange(this->room).BlockedToStriped(items, items, file, line);
      StoreDirectStriped<Width>(lane, to, items, more...);
    }
  }

 public:
  using typename Mover::TempStorage;
  WarpStore() : Mover{Mover::own()} {}
  WarpStore(TempStorage &room) : Mover{room} {}

  template <class To>
  void Store(To to, T (&items)[Items], PK_SIM_HERE) {
    run(to, items, pk_sim_file, pk_sim_line);
  }
  template <class To>
  void Store(To to, T (&items)[Items], int valid, PK_SIM_HERE) {
    run(to, items, pk_sim_file, pk_sim_line, valid);
  }
};

}  // namespace cub
