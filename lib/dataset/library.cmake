project_library(dataset
  HEADERS digest.h glob.h image_folder.h manifest.h manifest_builder.h numbering.h string_table.h
          validator.h
  SOURCES digest.cc glob.cc image_folder.cc manifest.cc manifest_builder.cc numbering.cc
          string_table.cc
  DEPS base
  PRIVATE_DEPS fmt::fmt)
