project_library(capacity
  HEADERS capacity_shares.h capacity_split.h saved_bytes.h settled_reads.h water_filling.h
  SOURCES capacity_shares.cc capacity_split.cc saved_bytes.cc settled_reads.cc water_filling.cc
  DEPS base coordination)
