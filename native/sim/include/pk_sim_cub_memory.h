// pk_sim_cub_memory.h: CUB's BlockLoad, BlockStore and BlockExchange: items of a block between memory and its threads,
// neighbours in a thread (blocked) or in a round of all threads (striped).
#pragma once
#pragma GCC system_header

#include "pk_sim_cub.h"

namespace cub {

template <class T, int X, int Items, bool TimeSliced = false, int Y = 1, int Z = 1, int Unused = 0>
class BlockExchange {
  static constexpr int threads = X * Y * Z;

 public:
  struct TempStorage {
    pk_sim_cub_room<T, threads * Items> values;
  };

 private:
  TempStorage &room;
  const int rank = pk_sim_block_rank();

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
  int blocked(int i) const { return rank * Items + i; }
  int striped(int i) const { return i * threads + rank; }
  int warp_striped(int i) const { return rank / 32 * 32 * Items + i * (threads < 32 ? threads : 32) + rank % 32; }
  // From places to places, by the block or by the warp.
  template <class Out, class From, class To>
  void move(const T (&in)[Items], Out (&out)[Items], From from, To to, const char *file, int line, bool warp = false) {
    for (int i = 0; i < Items; ++i) room.values[from(i)] = in[i];
    if (warp)
      __syncwarp(~0u, file, line);
    else
      __syncthreads(file, line);
    for (int i = 0; i < Items; ++i) out[i] = room.values[to(i)];
  }

 public:
  BlockExchange() : room(own()) {}
  BlockExchange(TempStorage &room) : room(room) {}

#define PK_SIM_MOVE(name, from, to, ...)                                                                      \
  template <class Out>                                                                                        \
  void name(const T(&in)[Items], Out(&out)[Items], PK_SIM_HERE) {                                             \
    move(                                                                                                     \
        in, out, [this](int i) { return this->from(i); }, [this](int i) { return this->to(i); }, pk_sim_file, \
        pk_sim_line, ##__VA_ARGS__);                                                                          \
  }                                                                                                           \
  void name(T(&items)[Items], PK_SIM_HERE) { name(items, items, pk_sim_file, pk_sim_line); }
  PK_SIM_MOVE(StripedToBlocked, striped, blocked)
  PK_SIM_MOVE(BlockedToStriped, blocked, striped)
  PK_SIM_MOVE(WarpStripedToBlocked, warp_striped, blocked, true)
  PK_SIM_MOVE(BlockedToWarpStriped, blocked, warp_striped, true)
#undef PK_SIM_MOVE
#define PK_SIM_SCATTER(name, to)                                                                           \
  template <class Out, class Rank>                                                                         \
  void name(const T(&in)[Items], Out(&out)[Items], Rank(&ranks)[Items], PK_SIM_HERE) {                     \
    move(                                                                                                  \
        in, out, [&](int i) { return (int)ranks[i]; }, [this](int i) { return this->to(i); }, pk_sim_file, \
        pk_sim_line);                                                                                      \
  }                                                                                                        \
  template <class Rank>                                                                                    \
  void name(T(&items)[Items], Rank(&ranks)[Items], PK_SIM_HERE) {                                          \
    name(items, items, ranks, pk_sim_file, pk_sim_line);                                                   \
  }
  PK_SIM_SCATTER(ScatterToBlocked, blocked)
  PK_SIM_SCATTER(ScatterToStriped, striped)
#undef PK_SIM_SCATTER
};

// ---- straight from and to memory
#define PK_SIM_DIRECT(name, place)                                                                       \
  template <int Threads = 0, class T, int Items, class From>                                             \
  PK_SIM_INLINE void LoadDirect##name(int rank, From from, T(&items)[Items]) {                           \
    for (int i = 0; i < Items; ++i) items[i] = from[place];                                              \
  }                                                                                                      \
  template <int Threads = 0, class T, int Items, class From>                                             \
  PK_SIM_INLINE void LoadDirect##name(int rank, From from, T(&items)[Items], int valid) {                \
    for (int i = 0; i < Items; ++i)                                                                      \
      if ((place) < valid) items[i] = from[place];                                                       \
  }                                                                                                      \
  template <int Threads = 0, class T, int Items, class From, class Default>                              \
  PK_SIM_INLINE void LoadDirect##name(int rank, From from, T(&items)[Items], int valid, Default other) { \
    for (int i = 0; i < Items; ++i) items[i] = other;                                                    \
    LoadDirect##name<Threads>(rank, from, items, valid);                                                 \
  }                                                                                                      \
  template <int Threads = 0, class T, int Items, class To>                                               \
  PK_SIM_INLINE void StoreDirect##name(int rank, To to, T(&items)[Items]) {                              \
    for (int i = 0; i < Items; ++i) to[place] = items[i];                                                \
  }                                                                                                      \
  template <int Threads = 0, class T, int Items, class To>                                               \
  PK_SIM_INLINE void StoreDirect##name(int rank, To to, T(&items)[Items], int valid) {                   \
    for (int i = 0; i < Items; ++i)                                                                      \
      if ((place) < valid) to[place] = items[i];                                                         \
  }
PK_SIM_DIRECT(Blocked, rank *Items + i)
PK_SIM_DIRECT(Striped, i *Threads + rank)
#undef PK_SIM_DIRECT

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <class T, int X, int Items, int Y, int Z>
struct pk_sim_cub_mover {
  typedef BlockExchange<T, X, Items, false, Y, Z> Exchange;
  typedef typename Exchange::TempStorage TempStorage;
  static constexpr int threads = X * Y * Z;
  TempStorage &room;
  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
};

template <class T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1,
          int Unused = 0>
class BlockLoad : pk_sim_cub_mover<T, X, Items, Y, Z> {
  typedef pk_sim_cub_mover<T, X, Items, Y, Z> Mover;

  template <class From, class... More>
  void run(From from, T (&items)[Items], const char *file, int line, More... more) {
    const int rank = pk_sim_block_rank();
    if constexpr (Algorithm == BLOCK_LOAD_DIRECT || Algorithm == BLOCK_LOAD_VECTORIZE) {
      LoadDirectBlocked(rank, from, items, more...);
    } else {
      LoadDirectStriped<Mover::threads>(rank, from, items, more...);
      if constexpr (Algorithm != BLOCK_LOAD_STRIPED)
        typename Mover::Exchange(this->room).StripedToBlocked(items, file, line);
    }
  }

 public:
  using typename Mover::TempStorage;
  BlockLoad() : Mover{Mover::own()} {}
  BlockLoad(TempStorage &room) : Mover{room} {}

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

template <class T, int X, int Items, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
          int Unused = 0>
class BlockStore : pk_sim_cub_mover<T, X, Items, Y, Z> {
  typedef pk_sim_cub_mover<T, X, Items, Y, Z> Mover;

  template <class To, class... More>
  void run(To to, T (&items)[Items], const char *file, int line, More... more) {
    const int rank = pk_sim_block_rank();
    if constexpr (Algorithm == BLOCK_STORE_DIRECT || Algorithm == BLOCK_STORE_VECTORIZE) {
      StoreDirectBlocked(rank, to, items, more...);
    } else {
      if constexpr (Algorithm != BLOCK_STORE_STRIPED)
        typename Mover::Exchange(this->room).BlockedToStriped(items, file, line);
      StoreDirectStriped<Mover::threads>(rank, to, items, more...);
    }
  }

 public:
  using typename Mover::TempStorage;
  BlockStore() : Mover{Mover::own()} {}
  BlockStore(TempStorage &room) : Mover{room} {}

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
