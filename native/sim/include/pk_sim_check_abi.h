// pk_sim_check_abi.h: what a checked image and the checker of the simulated device know of each other. Includes nothing
// but pk_sim_abi.h.
#ifndef PK_SIM_CHECK_ABI_H
#define PK_SIM_CHECK_ABI_H

#include "pk_sim_abi.h"

enum pk_sim_check_mode { PK_SIM_CHECK_ALL = 1, PK_SIM_CHECK_MEMORY = 2, PK_SIM_CHECK_COUNT = 3 };

// Strong: volatile or atomic. Of two strong accesses no order is asked.
// An exchange: what was there before it is often not asked for.
enum pk_sim_access {
  PK_SIM_READ,
  PK_SIM_WRITE,
  PK_SIM_STRONG_READ,
  PK_SIM_STRONG_WRITE,
  PK_SIM_ATOMIC,
  PK_SIM_ATOMIC_EXCHANGE
};

// What a checked kernel calls. `from` is an address of code in the image; where it is null, file and line say the
// place.
struct pk_sim_check_api {
  unsigned bytes;
  unsigned reserved;
  void (*read[5])(const void *address, const void *from);  // of 1, 2, 4, 8 and 16 bytes
  void (*write[5])(const void *address, const void *from);
  void (*access)(const void *address, pk_sim_u64 bytes, pk_sim_access kind, const void *from, const char *file,
                 int line);
  void (*fence)(void);
  void (*begin_block)(pk_sim_u64 block);
  void (*begin_thread)(unsigned thread);
  void (*dynamic_name)(const char *name, unsigned element_bytes);
  // An index outside its array's type.
  void (*index)(const char *type, long long index, const char *file, int line, int column);
  void (*misaligned)(const void *address, unsigned alignment, const char *type, const char *file, int line);
  void (*divided_by_zero)(const char *file, int line);
  void (*out_of_steps)(const void *from);
  // A fragment's elements have become those of a matrix; where a file is given, they are taken for one there.
  void (*fragment)(const void *elements, unsigned bytes, unsigned element_bytes, const char *file, int line);
};

// The other exported symbol of a checked image, pk_sim_check_v1.
struct pk_sim_check_image {
  unsigned bytes;
  pk_sim_check_mode mode;
  void (*bind)(const pk_sim_check_api *api);
  const char *source;   // the user's text, to name arrays by line and column
  const char *file;     // and its name
  pk_sim_u64 *flops;    // floating-point operations so far; null unless the image counts them
  char *own, *own_end;  // the simulator's variables in the image, which say where the running block is
  pk_sim_u64 *steps;    // basic blocks that this launch may still run; null unless the image counts them
  pk_sim_u64 step_limit;
};

#endif
