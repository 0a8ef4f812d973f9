/* Weights in the registers of the instruction set a file is built for: see vector.h. */
#ifndef KERNELS_LANES_H
#define KERNELS_LANES_H

#ifdef KERNELS_AVX512
#include "kernels/lanes_avx512.h"
#else
#include "kernels/lanes_avx2.h"
#endif

#endif
