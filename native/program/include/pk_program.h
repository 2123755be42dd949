// pk_program.h: CUDA's runtime for a program's host text. Included before everything else.
#pragma once
#include <cstdlib>
#include <new>
#include <type_traits>

// What programs ask for to see whether the runtime was included.
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__

// Each header needs those before it.
// clang-format off
#include "pk_program_words.h"
#include "driver_types.h"
#include "pk_program_table.h"
#include "pk_program_calls.h"
#include "pk_program_math.h"
// clang-format on
