// pk_sim_ldmatrix.h: ldmatrix, stmatrix and movmatrix on the simulated device: 8 x 8 elements of 16 bits between shared
// memory and the registers of a warp. Lane i says where row i % 8 of matrix i / 8 lies; it holds two neighbours of row
// i / 4 of every matrix, or of column i / 4 where the matrix is transposed.
#pragma once
#pragma GCC system_header

#include "pk_sim_matrix.h"

struct pk_sim_ldmatrix_frame {
  const pk_sim_warp_work *work;
  unsigned *registers;
  const void *row;
};
struct pk_sim_stmatrix_frame {
  const pk_sim_warp_work *work;
  const unsigned *registers;
  unsigned short *row;  // where its elements go
};

// The elements a lane holds of a matrix: `visit` takes which of the two it is, the row and the column.
template <bool Trans, class Visit>
PK_SIM_MATRIX_INLINE void pk_sim_pair_of(int lane, Visit visit) {
  for (int j = 0; j < 2; ++j) {
    const int line = lane / 4, at = lane % 4 * 2 + j;
    visit(j, Trans ? at : line, Trans ? line : at);
  }
}

template <int Count, bool Trans>
struct pk_sim_ldmatrix_work {
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    for (int lane = 0; lane < 32; ++lane) {
      unsigned short *const to = (unsigned short *)((const pk_sim_ldmatrix_frame *)frames[lane])->registers;
      for (int matrix = 0; matrix < Count; ++matrix)
        pk_sim_pair_of<Trans>(lane, [&](int j, int row, int column) PK_SIM_UNCHECKED {
          const void *from = ((const pk_sim_ldmatrix_frame *)frames[matrix * 8 + row])->row;
          to[2 * matrix + j] = ((const unsigned short *)from)[column];
        });
    }
  }
  static constexpr pk_sim_warp_work work = {"ldmatrix", compute};
};
template <int Count, bool Trans>
struct pk_sim_stmatrix_work {
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    for (int lane = 0; lane < 32; ++lane) {
      const pk_sim_stmatrix_frame &own = *(const pk_sim_stmatrix_frame *)frames[lane];
      for (int matrix = 0; matrix < Count; ++matrix)
        pk_sim_pair_of<Trans>(lane, [&](int j, int row, int column) PK_SIM_UNCHECKED {
          unsigned short *const to = ((const pk_sim_stmatrix_frame *)frames[matrix * 8 + row])->row;
          to[column] = ((const unsigned short *)own.registers)[2 * matrix + j];
        });
    }
  }
  static constexpr pk_sim_warp_work work = {"stmatrix", compute};
};
struct pk_sim_movmatrix_work {
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    unsigned short matrix[8][8];
    for (int lane = 0; lane < 32; ++lane)
      pk_sim_pair_of<false>(lane, [&](int j, int row, int column) PK_SIM_UNCHECKED {
        matrix[row][column] = ((const unsigned short *)((const pk_sim_ldmatrix_frame *)frames[lane])->row)[j];
      });
    for (int lane = 0; lane < 32; ++lane)
      pk_sim_pair_of<true>(lane, [&](int j, int row, int column) PK_SIM_UNCHECKED {
        ((unsigned short *)((const pk_sim_ldmatrix_frame *)frames[lane])->registers)[j] = matrix[row][column];
      });
  }
  static constexpr pk_sim_warp_work work = {"movmatrix", compute};
};

template <int Count, bool Trans>
PK_SIM_INLINE void pk_sim_ldmatrix(unsigned (&to)[Count], const void *row, const char *file, int line) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
  if (pk_sim_thread % 32 < 8 * Count) {
    pk_sim_matrix_aligned(row, 16, "ldmatrix", file, line);
    pk_sim_matrix_read(row, 16, file, line);
  }
  pk_sim_ldmatrix_frame frame = {&pk_sim_ldmatrix_work<Count, Trans>::work, to, row};
  pk_sim_matrix_call(frame, file, line);
}

template <int Count, bool Trans>
PK_SIM_INLINE void pk_sim_stmatrix(void *row, const unsigned (&from)[Count], const char *file, int line) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
  const bool gives = pk_sim_thread % 32 < 8 * Count;
  if (gives) pk_sim_matrix_aligned(row, 16, "stmatrix", file, line);
  pk_sim_piece<unsigned short, 8> piece;
  pk_sim_stmatrix_frame frame = {&pk_sim_stmatrix_work<Count, Trans>::work, from, piece.target((unsigned short *)row)};
  pk_sim_matrix_call(frame, file, line);
  if (gives) piece.write((unsigned short *)row, file, line);
}

PK_SIM_INLINE unsigned pk_sim_movmatrix(unsigned from, const char *file, int line) {
  unsigned to;
  pk_sim_ldmatrix_frame frame = {&pk_sim_movmatrix_work::work, &to, &from};
  pk_sim_matrix_call(frame, file, line);
  return to;
}
