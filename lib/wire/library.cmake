project_library(wire
  HEADERS codec.h frame.h frame_reader.h messages.h seal.h session.h stream_id.h
  SOURCES codec.cc frame.cc frame_reader.cc seal.cc session.cc stream_id.cc
  DEPS base)
