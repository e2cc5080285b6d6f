project_test(kube
  SOURCES api_error_test.cc conditions_test.cc object_test.cc percent_encoding_test.cc
          resources_test.cc time_text_test.cc
  DEPS kube)
