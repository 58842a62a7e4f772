# Fast versions of linear/1: baseline files, and files with instruction-set flags. Contraction
# is off everywhere, so that a fused multiply-add is written where it is meant.
set(linear_base
  codes.c
  linear_codes.c
  pack_codes.c
  linear_f32.c
  linear_finish.c
  linear_int8.c
  linear_layouts.c
  pack_x8.c
)
set(linear_avx2
  codes_avx2.c
  codes_int8_avx2.c
  linear_dense_avx2.c
  linear_dequant_avx2.c
  linear_dequant_k_avx2.c
  linear_k16_avx2.c
  linear_k32_avx2.c
  linear_q32_avx2.c
  pack_x8_avx2.c
  quantize_x_avx2.c
)
set(linear_fast ${linear_base} ${linear_avx2})
set_source_files_properties(${linear_base} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
set_source_files_properties(${linear_avx2} PROPERTIES
  COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-ffp-contract=off")
