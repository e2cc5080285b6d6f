project_test(sampler
  SOURCES distributed_sampler_test.cc golden_test.cc id_list_test.cc megatron_sampler_test.cc mt19937_test.cc
          order_crc_test.cc order_source_test.cc pcg64_test.cc pod_order_test.cc random_sampler_test.cc
          randperm_test.cc recipe_test.cc recipe_text_test.cc sequential_sampler_test.cc
          spdl_sampler_test.cc subset_test.cc
  DEPS sampler)
