find_package(fmt REQUIRED)

project_test(dataset
  SOURCES capacity_goal_test.cc digest_test.cc format_test.cc glob_test.cc image_folder_test.cc index_interval_test.cc manifest_builder_test.cc manifest_changes_test.cc manifest_test.cc megatron_idx_test.cc members_test.cc
          npy_test.cc numbering_test.cc patience_test.cc ranges_csv_test.cc ranges_test.cc s3_location_test.cc shard_sections_test.cc store_price_test.cc string_table_test.cc tar_groups_test.cc
          tar_idx_test.cc tar_reader_test.cc validator_test.cc
  DEPS dataset fmt::fmt)
