// pk_sim_end.h: included after the macros of the command line, before the source: what depends on them or on the
// source.
#pragma once
#pragma GCC system_header

// nvcc has these names always; here a source may call a variable so.
#ifndef PK_SIM_BESSEL_OF_OWN
using namespace pk_sim_bessel;
#endif
#include "pk_sim_assert.h"
#ifdef PK_SIM_RUNTIME  // the source mentions them, or includes what may
#include "pk_sim_runtime.h"
#endif
#ifdef PK_SIM_TEXTURES  // the source mentions them, or includes what may
#include "pk_sim_textures.h"
#endif
// Instructions of a GPU mean nothing here, and those of the host are no kernel's. The source's own are refused before
// it is compiled, with a better message; these are put together by macros, or stand in headers.
#pragma GCC poison asm __asm __asm__
