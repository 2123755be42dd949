// device_launch_parameters.h: a kernel's indices, which no host text has; every program has all of the runtime.
#pragma once
#include "pk_program.h"
