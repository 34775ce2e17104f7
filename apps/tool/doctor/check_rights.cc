// The user's rights to open devices and to lock memory.
#include <sstream>

#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/files.hpp"

namespace rio::tool {
namespace {

constexpr uint64_t kMemlockWanted = uint64_t{128} << 20;

void check_vfio(const Machine& machine, const CardState& card, Findings& findings) {
  const std::string number = std::to_string(card.iommu_group);
  const std::string node = machine.context.paths.dev + "/vfio/" + number;
  const std::string& user = machine.account.name;
  if (card.iommu_group < 0) {
    return;  // told as iommu.no-group
  }
  if (!exists(node)) {
    findings.add("rights.vfio-node", card.address, "there is no /dev/vfio/" + number, "",
                 "in a container: start it with --device=/dev/vfio/vfio --device=/dev/vfio/" +
                     number + "; on the host: rio-tool unbind " + card.address +
                     " and bind it again");
  } else if (!may_use(machine.account, node)) {
    findings.add("rights.vfio-group", card.address,
                 "user " + user + " may not open /dev/vfio/" + number,
                 "chown " + user + " /dev/vfio/" + number,
                 "for good: a udev rule, SUBSYSTEM==\"vfio\", OWNER=\"" + user + "\"");
  }
}

void check_memlock(const Machine& machine, Findings& findings) {
  const auto limit = parse_memlock(text_of(machine.context.paths.proc + "/self/limits"));
  if (machine.account.is_root() || !limit || *limit >= kMemlockWanted) {
    return;  // root is not counted
  }
  const std::string& user = machine.account.name;
  findings.add("rights.memlock", "",
               "user " + user + " may lock " + size_text(*limit) + ", " +
                   size_text(kMemlockWanted) + " or more are wanted",
               "echo '" + user + " - memlock unlimited' > /etc/security/limits.d/riopmd.conf",
               "then log in again; in a systemd unit: LimitMEMLOCK=infinity; in a container: "
               "--ulimit memlock=-1");
}

}  // namespace

std::optional<uint64_t> parse_memlock(const std::string& limits) {
  std::istringstream lines(limits);
  for (std::string line; std::getline(lines, line);) {
    static const std::string kName = "Max locked memory";
    if (line.rfind(kName, 0) != 0) {
      continue;
    }
    std::istringstream fields(line.substr(kName.size()));
    std::string soft;
    fields >> soft;
    return soft == "unlimited" ? UINT64_MAX : parse_number(soft);
  }
  return std::nullopt;
}

void check_rights(const Machine& machine, Findings& findings) {
  bool vfio = false;
  for (const CardState& card : machine.cards) {
    const std::string node = uio_node(machine.context.paths, card.address);
    if (card.driver == "vfio-pci") {
      vfio = true;
      check_vfio(machine, card, findings);
    } else if (!node.empty() && !machine.account.is_root()) {
      findings.add(
          "rights.uio", card.address,
          "user " + machine.account.name + " is not root, the card is bound to " + card.driver,
          card.iommu_group >= 0 ? "rio-tool bind --driver vfio-pci " + card.address : "",
          card.iommu_group >= 0 ? "" : "run programs with sudo");
    }
  }
  const std::string container = machine.context.paths.dev + "/vfio/vfio";
  if (vfio && exists(container) && !may_use(machine.account, container)) {
    findings.add("rights.vfio-container", "",
                 "user " + machine.account.name + " may not open /dev/vfio/vfio",
                 "chmod 666 /dev/vfio/vfio");
  }
  if (vfio) {
    check_memlock(machine, findings);
  }
}

}  // namespace rio::tool
