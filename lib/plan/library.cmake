project_library(plan
  HEADERS belady.h bit_vector.h bitmap_tree.h holders.h merged_order.h pass_plan.h plan.h policies.h
          replay.h simulate.h sizes.h slot_plan.h window_plan.h
  SOURCES holders.cc merged_order.cc pass_plan.cc planner.cc policies.cc replay.cc simulate.cc
          sizes.cc slot_plan.cc window_plan.cc
  DEPS base)
