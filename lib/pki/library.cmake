find_package(OpenSSL REQUIRED)

project_library(pki
  HEADERS pki.h
  SOURCES bundles.cc certificates.cc internal/openssl.cc keys.cc requests.cc
  DEPS base
  PRIVATE_DEPS OpenSSL::Crypto)
