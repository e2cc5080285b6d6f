project_library(storage
  HEADERS file_store.h object_store.h internal/walk.h
  SOURCES file_store.cc object_store.cc internal/walk.cc
  DEPS base dataset
  PRIVATE_DEPS fmt::fmt)
