project_test(simulation
  SOURCES cluster_test.cc home_forecast_test.cc least_capacity_test.cc lfu_test.cc min_test.cc offset_jobs_test.cc
          opt4torch_test.cc queues_test.cc reads_test.cc simple_test.cc simulate_test.cc stall_clock_test.cc
          theory_nodes_test.cc theory_test.cc trace_file_test.cc workload_test.cc
  DEPS simulation)
