#include "apps/testpmd/wire_name.hpp"

#include "fpga/name/parse.hpp"

namespace rio::testpmd {

std::string wire_name(std::string_view device, std::string_view args) {
  return device.starts_with("raw_rio") ? name::wire_of(args) : "";
}

}  // namespace rio::testpmd
