# Fast versions of linear/1: baseline files, and files with instruction-set flags. Contraction
# is off everywhere, so that a fused multiply-add is written where it is meant.
set(linear_base
  codes.c
  iq_tables.c
  linear_finish.c
  moe_codes.c
  pack_codes.c
  pack_x8.c
)
# entries that name the copies below
set(linear_steps
  linear_codes.c
  linear_f32.c
  linear_int8.c
  linear_layouts.c
  moe_int8.c
)
set(linear_vnni
  codes_int8_avx2.c
  linear_k16_avx2.c
  linear_k32_avx2.c
  linear_q32_avx2.c
)
set(linear_avx2
  codes_avx2.c
  codes_float_avx2.c
  codes_plain_avx2.c
  linear_dense_avx2.c
  linear_dequant_avx2.c
  linear_dequant_iq_avx2.c
  linear_dequant_k_avx2.c
  linear_iq_avx2.c
  pack_codes_avx2.c
  pack_x8_avx2.c
  quantize_x_avx2.c
  ${linear_vnni}
)
set_source_files_properties(${linear_base} ${linear_steps} PROPERTIES
  COMPILE_OPTIONS -ffp-contract=off)
set_source_files_properties(${linear_avx2} PROPERTIES
  COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-ffp-contract=off")

# davit_vnni_objects(TARGET DEFINITIONS FLAGS): the group kernels compiled once more (vnni.h)
function(davit_vnni_objects target definitions flags)
  add_library(${target} OBJECT ${linear_vnni})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/sdk/include)
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_compile_options(${target} PRIVATE ${flags})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
davit_vnni_objects(kernels-cpu-avxvnni "CPU_VNNI=avx;CPU_VNNI_VEX" -mavxvnni)
davit_vnni_objects(kernels-cpu-avx512vnni "CPU_VNNI=avx512"
  "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mprefer-vector-width=256")

# davit_avx512_objects(TARGET DEFINITIONS FLAGS): 512-bit vectors
function(davit_avx512_objects target definitions flags)
  add_library(${target} OBJECT codes_float_avx512.c linear_dense_avx512.c)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/sdk/include)
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_compile_options(${target} PRIVATE -mavx2 -mfma -mf16c -ffp-contract=off ${flags})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
davit_avx512_objects(kernels-cpu-avx512 "" "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl")
