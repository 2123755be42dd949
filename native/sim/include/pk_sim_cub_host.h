// pk_sim_cub_host.h: what stands in for the header of all of CUB, which NVRTC refuses, too.
#error "<cub/cub.cuh> is for host code; include the collective's own header, such as <cub/block/block_reduce.cuh>"
