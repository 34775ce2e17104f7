#include "lib/enumerate/inquiry.hpp"

#include <cerrno>
#include <set>

#include "lib/enumerate/csr.hpp"

namespace rio::enumerate {
namespace {

constexpr uint32_t kBlocksMax = 64;

// The list of extended features. A list that goes round in a circle ends where it meets itself.
[[nodiscard]] int find_blocks(PatientAccess& access, const Address& at, Node* node) {
  uint32_t word = 0;
  if (const int rc = access.read(at, Csr::kAssemblyInformation, &word); rc != 0) {
    return rc;
  }
  std::set<uint32_t> seen;
  for (uint32_t block = word & 0xFFFC; block != 0 && seen.size() < kBlocksMax;
       block = word >> 16 & 0xFFFC) {
    if (!seen.insert(block).second) {
      break;
    }
    if (const int rc = access.read(at, block, &word); rc != 0) {
      return rc;
    }
    if (is_lp_serial(word & 0xFFFF)) {
      node->lp_serial = block;
    } else if ((word & 0xFFFF) == kErrorManagementBlock) {
      node->error_management = block;
    }
  }
  return 0;
}

[[nodiscard]] int ask_switch(PatientAccess& access, const Address& at, Node* node,
                             std::string* why) {
  uint32_t port = 0;
  uint32_t limit = 0;
  int rc = access.read(at, Csr::kSwitchPort, &port);
  rc = rc != 0 ? rc : access.read(at, Csr::kTableLimit, &limit);
  if (rc != 0) {
    return rc;
  }
  const uint32_t ports = port >> 8 & 0xFF;
  node->entry_port = port & 0xFF;
  if (node->entry_port >= ports) {
    *why = "it says that it has " + std::to_string(ports) + " ports, and was entered by port " +
           std::to_string(node->entry_port);
    return -EPROTO;
  }
  node->ports.assign(ports, PortView{});
  // Devices of before rev. 1.3 read 0, and have 256 entries.
  node->table_entries = (limit & 0xFFFF) == 0 ? 256 : (limit & 0xFFFF) + 1;
  if (node->table_entries <= kProbeId) {
    *why = "its route table holds " + std::to_string(node->table_entries) +
           " destIDs, and 256 is the least";
    return -EPROTO;
  }
  return 0;
}

}  // namespace

int inquire(PatientAccess& access, const Address& at, Node* out, std::string* why) {
  Node node;
  uint32_t features = 0;
  if (const int rc = access.read(at, Csr::kDeviceIdentity, &node.identity); rc != 0) {
    return rc;
  }
  if (node.identity == 0 || node.identity == UINT32_MAX) {
    *why = node.identity == 0 ? "its identity reads 0" : "it reads all ones";
    return -EPROTO;
  }
  int rc = access.read(at, Csr::kFeatures, &features);
  node.is_switch = (features & kSwitchFeature) != 0;
  if (rc == 0 && node.is_switch) {
    rc = ask_switch(access, at, &node, why);
  }
  if (rc == 0 && (features & kExtendedFeatures) != 0) {
    rc = find_blocks(access, at, &node);
  }
  if (rc == 0) {
    *out = std::move(node);
  }
  return rc;
}

}  // namespace rio::enumerate
