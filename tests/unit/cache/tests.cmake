project_test(cache
  SOURCES directory_test.cc disk_state_test.cc disk_threads_test.cc disk_tier_test.cc home_map_test.cc memory_tier_test.cc segment_files_test.cc
          segment_format_test.cc tiering_test.cc
  DEPS cache)
