project_library(cache
  HEADERS directory.h disk_state.h disk_threads.h disk_tier.h home_map.h memory_tier.h segment_files.h segment_format.h segment_io.h
          tiering.h
  SOURCES directory.cc disk_state.cc disk_threads.cc disk_tier.cc home_map.cc memory_tier.cc segment_files.cc segment_format.cc
          tiering.cc
  DEPS base
  PRIVATE_DEPS fmt::fmt)
