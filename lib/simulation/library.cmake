project_library(simulation
  HEADERS cluster.h least_capacity.h policies/opt4torch.h policies/policy.h policies/shelf.h reads.h simulate.h
          stall_clock.h trace_file.h workload.h
  SOURCES homed_cluster.cc least_capacity.cc nopfs_cluster.cc planned_cluster.cc policies/lfu.cc policies/min.cc
          policies/opt4torch.cc policies/queues.cc policies/simple.cc reads.cc simulate.cc trace_file.cc workload.cc
  DEPS base dataset plan)
