# Writes OUTPUT, which has the dashboards in FOLDER in it: cli/dashboard/embedded.h.
function(embed_dashboards folder output)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.json)
  list(SORT files)
  set(entries "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} json)
    get_filename_component(name ${file} NAME)
    string(APPEND entries "    {.name = \"${name}\", .json = R\"dashboard(${json})dashboard\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "cli/dashboard/embedded.h"

namespace optcache::cli {
namespace {

constexpr EmbeddedDashboard kDashboards[] = {
@entries@};

}  // namespace

std::span<const EmbeddedDashboard> EmbeddedDashboards() {
  return kDashboards;
}

}  // namespace optcache::cli
]])
endfunction()
