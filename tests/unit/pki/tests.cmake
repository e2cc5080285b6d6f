project_test(pki
  SOURCES bundles_test.cc certificates_test.cc keys_test.cc requests_test.cc
  DEPS pki)
