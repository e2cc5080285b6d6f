project_library(cache
  HEADERS directory.h home_map.h memory_tier.h
  SOURCES directory.cc home_map.cc memory_tier.cc
  DEPS base)
