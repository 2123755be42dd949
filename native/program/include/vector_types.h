// vector_types.h: the vector types; every program has all of the runtime.
#pragma once
#include "pk_program.h"
