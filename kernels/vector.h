/*
 * The vectors of the instruction set a file is built for: meson.build gives every file of the
 * AVX-512 library -DKERNELS_AVX512. Headers named *_vector.h are kernels written once in the
 * words of vector_avx2.h and compiled for each set; the C file of the same idea is what they
 * must equal.
 */
#ifndef KERNELS_VECTOR_H
#define KERNELS_VECTOR_H

#ifdef KERNELS_AVX512
#include "kernels/vector_avx512.h"
#else
#include "kernels/vector_avx2.h"
#endif

#endif
