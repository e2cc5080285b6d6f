project_library(sampler
  HEADERS distributed_sampler.h id_list.h megatron_sampler.h mt19937.h order_crc.h order_source.h pcg64.h
          pod_order.h randperm.h random_sampler.h recipe.h recipe_text.h sequential_sampler.h spdl_sampler.h
          subset.h
  SOURCES distributed_sampler.cc id_list.cc megatron_sampler.cc mt19937.cc order_crc.cc order_source.cc
          pcg64.cc pod_order.cc randperm.cc random_sampler.cc recipe.cc recipe_text.cc spdl_sampler.cc subset.cc
  DEPS base)
