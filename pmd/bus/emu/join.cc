#include "pmd/bus/emu/join.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "fpga/model/card.hpp"
#include "fpga/name/keys.hpp"
#include "fpga/wire/relay/relay_wire.hpp"
#include "fpga/wire/shm/shm_wire.hpp"
#include "fpga/wire/switched/fabric.hpp"
#include "fpga/wire/udp/udp_wire.hpp"

namespace rio::pmd {
namespace {

using Areas = std::shared_ptr<base::ReadableAreas>;

struct Named {
  std::shared_ptr<model::Cable> cable = model::make_cable();
  bool used[2] = {false, false};
};

std::mutex cables_mutex;  // of cables() and fabrics()

std::map<std::string, Named>& cables() {
  static std::map<std::string, Named> all;
  return all;
}

std::map<std::string, std::weak_ptr<wire::switched::Fabric>>& fabrics() {
  static std::map<std::string, std::weak_ptr<wire::switched::Fabric>> all;
  return all;
}

/// A side was unplugged: its wire is destroyed.
void unplug(const std::string& name, int side) {
  const std::lock_guard lock(cables_mutex);
  Named& named = cables()[name];
  named.used[side] = false;
  if (!named.used[0] && !named.used[1]) {
    cables().erase(name);
  }
}

/// The fabric of a file, or a new one. With the lock held.
[[nodiscard]] int find_fabric(const std::string& topology,
                              std::shared_ptr<wire::switched::Fabric>* out) {
  std::error_code ignored;  // a file that cannot be found is told by load_topology()
  const std::string path = std::filesystem::weakly_canonical(topology, ignored).string();
  std::shared_ptr<wire::switched::Fabric> fabric = fabrics()[path].lock();
  if (fabric == nullptr) {
    wire::switched::Topology loaded;
    std::string error;
    if (const int rc = wire::switched::load_topology(topology, &loaded, &error); rc != 0) {
      base::log_error("emulated card: %s", error.c_str());
      return rc;
    }
    if (const int rc = wire::switched::Fabric::create(std::move(loaded), nullptr, &fabric);
        rc != 0) {
      base::log_error("emulated card: no memory for the fabric of %s; take a smaller one",
                      topology.c_str());
      return rc;
    }
    fabrics()[path] = fabric;
  }
  *out = std::move(fabric);
  return 0;
}

/// The beginning of a card's name, as "shm:".
[[nodiscard]] std::string prefix_of(const name::Kind& kind) {
  return std::string(name::row_of(kind).prefix);
}

/// Joins a wire of several processes or machines. @param card "shm:lab".
/// @param told what the log says before the error.
template <typename MemberWire, typename Seat>
[[nodiscard]] int join_member(const std::string& card, const char* told, const Seat& seat,
                              Joined* out) {
  std::unique_ptr<MemberWire> wire;
  std::string error;
  if (const int rc = MemberWire::join(seat, &wire, &error); rc != 0) {
    base::log_error("emulated card: %s%s", told, error.c_str());
    return rc;
  }
  out->member = wire.get();
  out->wire = std::move(wire);
  out->queue_pairs = out->member->ids();
  out->name = card + "/" + std::to_string(out->member->first_id());
  return 0;
}

/// Plugs into a cable of this process. "loop" is a loop-back of its own each time.
[[nodiscard]] int join_wire(const EmuConfig& /*config*/, const name::Cable& cable,
                            const Areas& /*areas*/, Joined* out) {
  const std::string& name = cable.name;
  out->name = prefix_of(cable) + name + "/";
  if (name == "loop") {
    out->name += "0";
    out->wire = model::make_loop_wire();
    return 0;
  }
  const std::lock_guard lock(cables_mutex);
  Named& named = cables()[name];
  for (int side = 0; side < 2; ++side) {
    if (!named.used[side]) {
      named.used[side] = true;
      out->name += std::to_string(side);
      out->wire = named.cable->plug(side);
      out->plug.reset(static_cast<void*>(nullptr), [name, side](void*) { unplug(name, side); });
      return 0;
    }
  }
  base::log_error("emulated card: wire '%s' has two ends already; take another name", name.c_str());
  return -EBUSY;
}

/// Plugs into the fabric of a topology file, which is made if no card is in it yet. It is gone with
/// its last card.
[[nodiscard]] int join_wire(const EmuConfig& /*config*/, const name::Switched& card,
                            const Areas& /*areas*/, Joined* out) {
  const std::lock_guard lock(cables_mutex);
  std::shared_ptr<wire::switched::Fabric> fabric;
  if (const int rc = find_fabric(card.topology, &fabric); rc != 0) {
    return rc;
  }
  out->name = prefix_of(card) + "/" + card.at;
  const int rc = fabric->plug(card.at, &out->wire);
  if (rc != 0) {
    base::log_error("emulated card: %s: endpoint '%s' %s", card.topology.c_str(), card.at.c_str(),
                    rc == -EBUSY ? "has a card already; take another one"
                                 : "does not exist; name one of the file's endpoints by at=");
  }
  return rc;
}

[[nodiscard]] int join_wire(const EmuConfig& config, const name::Shm& shm, const Areas& areas,
                            Joined* out) {
  if (const uint32_t pairs = config.model.queue_pairs;
      !shm.board.empty() && shm.queue_pair >= pairs) {
    base::log_error("emulated card: queue pair %u of a board of %u; give 0 to %u", shm.queue_pair,
                    pairs, pairs - 1);
    return -EINVAL;
  }
  const wire::shm::Seat seat{.fabric = shm.fabric,
                             .id = config.id,
                             .id_step = config.id_step,
                             .ids = config.model.queue_pairs,
                             .board = shm.board,
                             .queue_pair = shm.queue_pair,
                             .pull = shm.pull,
                             .areas = shm.pull ? areas : nullptr};
  out->shows_memory = seat.areas != nullptr;
  return join_member<wire::shm::ShmWire>(prefix_of(shm) + shm.fabric, "", seat, out);
}

[[nodiscard]] int join_wire(const EmuConfig& config, const name::Udp& udp, const Areas& /*areas*/,
                            Joined* out) {
  const char* const key = std::getenv("RIO_UDP_KEY");
  const wire::udp::Seat seat{.fabric = udp.fabric,
                             .id = config.id,
                             .ids = config.model.queue_pairs,
                             .members = udp.members,
                             .bind = udp.bind,
                             .port = udp.port,
                             .key = key == nullptr ? "" : key,
                             .patience_s = udp.patience_s,
                             .faults = {udp.loss_seed, udp.loss_rate}};
  const std::string card = prefix_of(udp) + udp.fabric;
  return join_member<wire::udp::UdpWire>(card, (card + ": ").c_str(), seat, out);
}

[[nodiscard]] int join_wire(const EmuConfig& config, const name::Relay& relay,
                            const Areas& /*areas*/, Joined* out) {
  const wire::relay::Ticket ticket{relay.name, relay.board, config.id, config.model.queue_pairs};
  return join_member<wire::relay::RelayWire>(prefix_of(relay) + relay.name, "", ticket, out);
}

}  // namespace

int join(const EmuConfig& config, std::shared_ptr<base::ReadableAreas> areas, Joined* out) {
  Joined joined;
  joined.queue_pairs = config.model.queue_pairs;
  const int rc = std::visit(
      [&](const auto& wire) { return join_wire(config, wire, areas, &joined); }, config.wire);
  if (rc == 0) {
    *out = std::move(joined);
  }
  return rc;
}

}  // namespace rio::pmd
