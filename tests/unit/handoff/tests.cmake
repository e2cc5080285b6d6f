project_test(handoff
  SOURCES arena_test.cc channel_test.cc codec_test.cc connection_test.cc frame_buffer_test.cc
          golden_frames_test.cc memory_file_test.cc output_queue_test.cc socket_test.cc
  DEPS handoff sampler)
