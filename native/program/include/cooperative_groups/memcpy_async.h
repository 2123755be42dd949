// cooperative_groups/memcpy_async.h: functions of kernels, which no host text has.
#pragma once
#include "cooperative_groups.h"
