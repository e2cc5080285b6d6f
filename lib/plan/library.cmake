project_library(plan
  HEADERS belady.h bit_vector.h bitmap_tree.h holders.h merged_order.h pass_plan.h plan.h
          policies/opt4torch.h policies/policy.h policies/sample_lists.h policies/shelf.h replay.h
          sizes.h slot_plan.h window_plan.h
  SOURCES holders.cc merged_order.cc pass_plan.cc planner.cc policies/lfu.cc policies/min.cc
          policies/opt4torch.cc policies/queues.cc policies/simple.cc replay.cc sizes.cc slot_plan.cc
          window_plan.cc
  DEPS base)
