project_test(net
  SOURCES address_test.cc authorize_test.cc bulk_connection_test.cc bulk_handshake_test.cc
          bulk_test.cc client_pool_test.cc connection_test.cc dialer_test.cc event_loop_test.cc
          handshake_gate_test.cc http_answer_test.cc http_body_test.cc http_client_contract_test.cc
          http_client_test.cc http_head_test.cc http_server_test.cc http_slow_client_test.cc
          http_stream_test.cc http_test.cc https_test.cc listener_test.cc peer_test.cc
          periodic_timer_test.cc send_queue_test.cc server_test.cc service_pages_test.cc
          socket_bio_test.cc stall_watch_test.cc stop_signals_test.cc tls_connection_test.cc
          tls_files_test.cc tls_socket_test.cc tls_test.cc unix_http_client_test.cc versions_test.cc
          worker_thread_test.cc connections_by_source_test.cc
  DEPS net pki)
