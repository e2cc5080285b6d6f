find_package(fmt REQUIRED)

project_test(dataset
  SOURCES digest_test.cc glob_test.cc image_folder_test.cc manifest_builder_test.cc manifest_test.cc
          numbering_test.cc string_table_test.cc
  DEPS dataset fmt::fmt)
