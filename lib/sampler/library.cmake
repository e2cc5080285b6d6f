project_library(sampler
  HEADERS distributed_sampler.h mt19937.h order_crc.h order_source.h randperm.h random_sampler.h
          recipe.h sequential_sampler.h
  SOURCES distributed_sampler.cc mt19937.cc order_crc.cc order_source.cc randperm.cc
          random_sampler.cc recipe.cc
  DEPS base)
