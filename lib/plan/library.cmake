find_package(nlohmann_json REQUIRED)

project_library(plan
  HEADERS belady.h bit_vector.h bitmap_tree.h decision_table.h fitted_base.h holders.h home_forecast.h merged_order.h node_share.h pass_plan.h plan.h
          plan_file.h policies/opt4torch.h policies/policy.h policies/sample_lists.h policies/shelf.h
          replay.h safetensors.h sizes.h slot_plan.h spare_room.h uncleared.h window_plan.h
  SOURCES decision_table.cc fitted_base.cc holders.cc home_forecast.cc merged_order.cc node_share.cc pass_plan.cc plan_file.cc planner.cc policies/lfu.cc
          policies/min.cc policies/opt4torch.cc policies/queues.cc policies/simple.cc replay.cc
          safetensors.cc sizes.cc slot_plan.cc spare_room.cc window_plan.cc
  DEPS base
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
