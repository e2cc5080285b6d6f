project_library(plan
  HEADERS belady.h bit_vector.h bitmap_tree.h fitted_base.h holders.h home_forecast.h merged_order.h node_share.h
          objective.h pass_plan.h plan.h replay.h sample_lists.h sizes.h slot_plan.h spare_room.h uncleared.h window_plan.h
  SOURCES fitted_base.cc holders.cc home_forecast.cc merged_order.cc node_share.cc pass_plan.cc planner.cc replay.cc
          sizes.cc slot_plan.cc spare_room.cc window_plan.cc
  DEPS base)
