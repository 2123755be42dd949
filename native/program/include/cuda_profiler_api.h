// cuda_profiler_api.h: the profiler's switches; every program has all of the runtime.
#pragma once
#include "pk_program.h"
