// cooperative_groups.h: the names of groups, which only kernels have; host text declares functions that take them.
#pragma once
#include "pk_program.h"

namespace cooperative_groups {
struct thread_block;
struct thread_group;
struct coalesced_group;
struct grid_group;
struct cluster_group;
struct multi_grid_group;
template <unsigned Size, class Parent = void>
struct thread_block_tile;
template <class T>
struct plus;
template <class T>
struct less;
template <class T>
struct greater;
template <class T>
struct bit_and;
template <class T>
struct bit_or;
template <class T>
struct bit_xor;
}  // namespace cooperative_groups
