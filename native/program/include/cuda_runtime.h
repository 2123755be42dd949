// cuda_runtime.h: the runtime; every program has all of the runtime.
#pragma once
#include "pk_program.h"
