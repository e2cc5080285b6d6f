# The functions by which every target of the project is declared.

add_library(project_warnings INTERFACE)
target_compile_options(project_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wno-missing-field-initializers  # what a designated initializer leaves out has its default
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # std::stable_sort of libstdc++ 12 uses what it has itself deprecated; g++ still says ours.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  $<$<BOOL:${CMAKE_UNITY_BUILD}>:-Wno-subobject-linkage>  # g++ takes the sources for headers
  # g++ 12 at -O3 sees strings overlap that do not (GCC's bug 105651), and moved-from members of
  # variants and optionals that nobody reads.
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict;-Wno-maybe-uninitialized>"
  $<$<BOOL:${OPTCACHE_WERROR}>:-Werror>)

# Paths in messages and symbols begin at the repository, so that what compiles is the same in every
# checkout, and ccache finds it.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
add_compile_definitions(_TURN_OFF_PLATFORM_STRING)  # cpprestsdk's U macro breaks gtest
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_definitions(BOOST_ASIO_HAS_CO_AWAIT=1 BOOST_ASIO_HAS_STD_COROUTINE=1)
endif()
if(OPTCACHE_SANITIZE)
  add_compile_options(-fsanitize=${OPTCACHE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OPTCACHE_SANITIZE})
  if(OPTCACHE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Asio's fences
  endif()
endif()
if(OPTCACHE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

add_custom_target(libraries)  # all of lib/, without tests and programs

# One library a folder of lib/: headers are checked to stand alone; DEPS is all of ours that it may
# include, PRIVATE_DEPS the third parties that only its own .cc files see.
function(project_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "HEADERS;SOURCES;DEPS;PRIVATE_DEPS")
  list(TRANSFORM ARG_HEADERS PREPEND "${name}/")
  list(TRANSFORM ARG_SOURCES PREPEND "${name}/")
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib
                                                   FILES ${ARG_HEADERS})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE project_warnings ${ARG_PRIVATE_DEPS})
    add_dependencies(libraries ${name})
  else()
    add_library(${name} INTERFACE)
    target_sources(${name} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib
                                                      FILES ${ARG_HEADERS})
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  endif()
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# What runs once, or waits for others, is not optimised where a build is for tests alone: -O1 takes a third
# longer to compile, with the address and undefined behaviour sanitizers more than twice as long.
# Images are built without the tests, and so without their programs.
function(compile_quickly)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
    endif()
  endforeach()
endfunction()

# One test program a library or program: tests/unit/<name>/*_test.cc. Its tests carry the label
# <name>, so that `ctest -L '^plan$'` runs those of one library.
function(project_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPS")
  list(TRANSFORM ARG_SOURCES PREPEND "${name}/")
  string(REPLACE "-" "_" target "${name}_test")
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} source_dir project_warnings GTest::gmock GTest::gtest_main)
  compile_quickly(${target})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS ${name})
endfunction()
