// cuda_runtime_api.h: the runtime's functions; every program has all of the runtime.
#pragma once
#include "pk_program.h"
