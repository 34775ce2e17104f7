#include "apps/tool/global_options.hpp"

#include <algorithm>
#include <cstdio>

namespace rio::tool {

std::string json_text(const Json& data, int indent) {
  return data.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string harmless(const std::string& text) {
  static constexpr size_t kTextMax = 80;
  std::string out = text.substr(0, kTextMax);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

void print_result(const GlobalOptions& context, const Json& data, const std::string& text) {
  if (context.json) {
    std::printf("%s\n", json_text(data, 2).c_str());
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
