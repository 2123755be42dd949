// cooperative_groups/reduce.h: functions of kernels, which no host text has.
#pragma once
#include "cooperative_groups.h"
