#include "apps/tool/context.hpp"

#include <cstdio>

namespace rio::tool {

void print_result(const Context& context, const Json& data, const std::string& text) {
  if (context.json) {
    // Names of files and devices may be no UTF-8.
    const std::string dump = data.dump(2, ' ', false, Json::error_handler_t::replace);
    std::printf("%s\n", dump.c_str());
  } else {
    std::fputs(text.c_str(), stdout);
  }
}

int complain(const std::string& error, const std::string& remedy) {
  std::fflush(stdout);
  std::fprintf(stderr, "rio-tool: error: %s\nrio-tool: remedy: %s\n", error.c_str(),
               remedy.c_str());
  return kExitFailed;
}

}  // namespace rio::tool
