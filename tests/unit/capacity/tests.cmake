project_test(capacity
  SOURCES capacity_shares_test.cc capacity_split_test.cc saved_bytes_test.cc settled_reads_test.cc
          water_filling_test.cc
  DEPS capacity simulation)
