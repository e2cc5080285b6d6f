find_package(CURL REQUIRED)

project_library(storage
  HEADERS file_store.h http_keys.h http_store.h index.h internal/curl.h internal/digest_many.h internal/first_error.h internal/stat_many.h internal/walk.h listing_file.h
          object_store.h open_store.h retrying_store.h verify.h
  SOURCES file_store.cc http_keys.cc http_store.cc index.cc internal/curl.cc internal/digest_many.cc internal/stat_many.cc internal/walk.cc listing_file.cc
          object_store.cc open_store.cc retrying_store.cc verify.cc
  DEPS base dataset
  PRIVATE_DEPS fmt::fmt CURL::libcurl)
