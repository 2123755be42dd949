// pk_sim_nv_target.h: code by what it is compiled for: the simulated device is one of compute capability 9.0.
#pragma once
#pragma GCC system_header

#define PK_SIM_TARGET_BARE(...) __VA_ARGS__
#define PK_SIM_TARGET_1(code, other, ...) PK_SIM_TARGET_BARE code
#define PK_SIM_TARGET_0(code, other, ...) PK_SIM_TARGET_BARE other
#define PK_SIM_TARGET_JOINED(a, b) a##b
#define PK_SIM_TARGET_CHOOSE(holds, ...) PK_SIM_TARGET_JOINED(PK_SIM_TARGET_, holds)(__VA_ARGS__)
#define NV_IF_TARGET(target, ...) PK_SIM_TARGET_CHOOSE(target, __VA_ARGS__, (), )
#define NV_IF_ELSE_TARGET(target, code, other) PK_SIM_TARGET_CHOOSE(target, code, other, )
// The first that holds, of up to six.
#define PK_SIM_TARGET_OF_1(target, code, ...) PK_SIM_TARGET_CHOOSE(target, code, (), )
#define PK_SIM_TARGET_OF_2(target, code, ...) PK_SIM_TARGET_CHOOSE(target, code, (PK_SIM_TARGET_OF_1(__VA_ARGS__)), )
#define PK_SIM_TARGET_OF_3(target, code, ...) PK_SIM_TARGET_CHOOSE(target, code, (PK_SIM_TARGET_OF_2(__VA_ARGS__)), )
#define PK_SIM_TARGET_OF_4(target, code, ...) PK_SIM_TARGET_CHOOSE(target, code, (PK_SIM_TARGET_OF_3(__VA_ARGS__)), )
#define PK_SIM_TARGET_OF_5(target, code, ...) PK_SIM_TARGET_CHOOSE(target, code, (PK_SIM_TARGET_OF_4(__VA_ARGS__)), )
#define PK_SIM_TARGET_OF_6(target, code, ...) PK_SIM_TARGET_CHOOSE(target, code, (PK_SIM_TARGET_OF_5(__VA_ARGS__)), )
#define NV_DISPATCH_TARGET(...) PK_SIM_TARGET_OF_6(__VA_ARGS__, 0, (), 0, (), 0, (), 0, (), 0, (), )

#define NV_IS_DEVICE 1
#define NV_IS_HOST 0
#define NV_ANY_TARGET 1
#define NV_NO_TARGET 0
#define NV_HAS_FEATURE_SM_90a 1
#define NV_PROVIDES_SM_50 1
#define NV_PROVIDES_SM_52 1
#define NV_PROVIDES_SM_53 1
#define NV_PROVIDES_SM_60 1
#define NV_PROVIDES_SM_61 1
#define NV_PROVIDES_SM_62 1
#define NV_PROVIDES_SM_70 1
#define NV_PROVIDES_SM_72 1
#define NV_PROVIDES_SM_75 1
#define NV_PROVIDES_SM_80 1
#define NV_PROVIDES_SM_86 1
#define NV_PROVIDES_SM_87 1
#define NV_PROVIDES_SM_88 1
#define NV_PROVIDES_SM_89 1
#define NV_PROVIDES_SM_90 1
#define NV_PROVIDES_SM_100 0
#define NV_PROVIDES_SM_101 0
#define NV_PROVIDES_SM_103 0
#define NV_PROVIDES_SM_110 0
#define NV_PROVIDES_SM_120 0
#define NV_PROVIDES_SM_121 0
#define NV_IS_EXACTLY_SM_50 0
#define NV_IS_EXACTLY_SM_52 0
#define NV_IS_EXACTLY_SM_53 0
#define NV_IS_EXACTLY_SM_60 0
#define NV_IS_EXACTLY_SM_61 0
#define NV_IS_EXACTLY_SM_62 0
#define NV_IS_EXACTLY_SM_70 0
#define NV_IS_EXACTLY_SM_72 0
#define NV_IS_EXACTLY_SM_75 0
#define NV_IS_EXACTLY_SM_80 0
#define NV_IS_EXACTLY_SM_86 0
#define NV_IS_EXACTLY_SM_87 0
#define NV_IS_EXACTLY_SM_88 0
#define NV_IS_EXACTLY_SM_89 0
#define NV_IS_EXACTLY_SM_90 1
#define NV_IS_EXACTLY_SM_100 0
#define NV_IS_EXACTLY_SM_101 0
#define NV_IS_EXACTLY_SM_103 0
#define NV_IS_EXACTLY_SM_110 0
#define NV_IS_EXACTLY_SM_120 0
#define NV_IS_EXACTLY_SM_121 0
