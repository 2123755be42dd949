// host_defines.h: __host__ and its kin; every program has all of the runtime.
#pragma once
#include "pk_program.h"
