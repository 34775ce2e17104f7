#include "fpga/name/pci_address.hpp"

#include <algorithm>

#include "base/formatted.hpp"
#include "base/number.hpp"

namespace rio::name {

std::string PciAddress::text() const {
  return base::formatted("%04x:%02x:%02x.%x", domain, bus, device, function);
}

bool read_pci_address(std::string_view text, PciAddress* out) {
  PciAddress read;
  struct {
    char end;
    size_t digits;
    uint32_t most;
    uint32_t PciAddress::*value;
  } const parts[] = {{':', 8, UINT32_MAX, &PciAddress::domain},
                     {':', 2, 0xFF, &PciAddress::bus},
                     {'.', 2, 31, &PciAddress::device},
                     {'\0', 1, 7, &PciAddress::function}};
  const auto colons = std::ranges::count(text, ':');
  if (colons > 2) {
    return false;
  }
  for (auto i = 2 - colons; i < 4; ++i) {
    const auto& part = parts[i];
    const size_t end = part.end == '\0' ? text.size() : text.find(part.end);
    if (end == std::string_view::npos || end > part.digits) {
      return false;
    }
    uint64_t value = 0;
    if (!base::read_hex(text.substr(0, end), part.most, &value)) {
      return false;
    }
    read.*part.value = static_cast<uint32_t>(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  *out = read;
  return true;
}

}  // namespace rio::name
