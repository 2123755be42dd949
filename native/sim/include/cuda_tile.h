// cuda_tile.h: CUDA Tile C++ on the simulated device: a tile is an array on the heap, and what is done to whole tiles
// is a loop. The same names as NVIDIA's header gives; docs/jit.md tells those that are missing.
#pragma once
#pragma GCC system_header

#if __cplusplus < 202002L
#error "tile kernels need C++20: compile them with --std=c++20"
#endif

// Each header needs those before it.
// clang-format off
#include "pk_sim_tile_shape.h"
#include "pk_sim_tile_types.h"
#include "pk_sim_tile_value.h"
#include "pk_sim_tile_math.h"
#include "pk_sim_tile_moves.h"
#include "pk_sim_tile_reductions.h"
#include "pk_sim_tile_products.h"
#include "pk_sim_tile_kernel.h"
#include "pk_sim_tile_memory.h"
#include "pk_sim_tile_views.h"
// clang-format on
