project_test(cache
  SOURCES directory_test.cc home_map_test.cc memory_tier_test.cc
  DEPS cache)
