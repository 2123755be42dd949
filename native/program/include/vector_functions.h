// vector_functions.h: make_float4() and its kin; every program has all of the runtime.
#pragma once
#include "pk_program.h"
