project_test(plan
  SOURCES belady_test.cc bit_vector_test.cc bitmap_tree_test.cc fitted_base_test.cc holders_test.cc
          home_forecast_test.cc merged_order_test.cc node_share_test.cc pass_plan_test.cc planner_test.cc
          replay_test.cc sizes_test.cc slot_plan_test.cc spare_room_test.cc unequal_sizes_test.cc window_plan_test.cc
  DEPS plan)
