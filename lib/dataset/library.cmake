project_library(dataset
  HEADERS capacity_goal.h digest.h format.h glob.h image_folder.h index_interval.h internal/shard_sections.h manifest.h manifest_builder.h manifest_changes.h megatron_idx.h members.h
          npy.h numbering.h order.h patience.h ranges.h ranges_csv.h s3_location.h store_price.h string_table.h tar_groups.h tar_idx.h tar_reader.h validator.h
  SOURCES capacity_goal.cc digest.cc format.cc glob.cc image_folder.cc index_interval.cc internal/shard_sections.cc manifest.cc manifest_builder.cc manifest_changes.cc megatron_idx.cc members.cc
          npy.cc numbering.cc patience.cc ranges.cc ranges_csv.cc s3_location.cc store_price.cc string_table.cc tar_groups.cc tar_idx.cc tar_reader.cc
          validator.cc
  DEPS base
  PRIVATE_DEPS fmt::fmt)
