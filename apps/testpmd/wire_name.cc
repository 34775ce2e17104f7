#include "apps/testpmd/wire_name.hpp"

namespace rio::testpmd {

std::string wire_name(std::string_view device, std::string_view args) {
  if (!device.starts_with("raw_rio")) {
    return "";
  }
  constexpr std::string_view kKey = "wire=";
  while (!args.empty()) {
    const size_t comma = args.find(',');
    const std::string_view pair = args.substr(0, comma);
    if (pair.starts_with(kKey)) {
      return std::string(pair.substr(kKey.size()));
    }
    args.remove_prefix(comma == std::string_view::npos ? args.size() : comma + 1);
  }
  return "loop";
}

}  // namespace rio::testpmd
