project_library(api
  HEADERS enumerations.h
  DEPS base dataset plan)
