// curand_kernel.h: cuRAND's device generators, whose integers and uniform numbers have a device's bits.
#pragma once
#pragma GCC system_header

#include "pk_sim_curand_poisson.h"
#include "pk_sim_curand_refused.h"
