project_test(wire
  SOURCES codec_test.cc frame_reader_test.cc frame_test.cc golden_frames_test.cc messages_test.cc
          seal_test.cc session_test.cc stream_id_test.cc
  DEPS wire)
