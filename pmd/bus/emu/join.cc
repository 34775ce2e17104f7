#include "pmd/bus/emu/join.hpp"

#include <cstdlib>

#include "base/log.hpp"
#include "fpga/name/keys.hpp"
#include "fpga/wire/relay/relay_wire.hpp"
#include "fpga/wire/shm/shm_wire.hpp"
#include "fpga/wire/udp/udp_wire.hpp"
#include "pmd/bus/emu/fabric.hpp"

namespace rio::pmd {
namespace {

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

[[nodiscard]] int join_wire(const EmuConfig& /*config*/, const name::Cable& cable, Joined* out) {
  int side = 0;
  const int rc = plug_in(cable.name, &out->wire, &side, &out->plug);
  if (rc != 0) {
    base::log_error("emulated card: wire '%s' has two ends already; take another name",
                    cable.name.c_str());
    return rc;
  }
  out->name = prefix_of(cable) + cable.name + "/" + std::to_string(side);
  return 0;
}

[[nodiscard]] int join_wire(const EmuConfig& /*config*/, const name::Switched& switches,
                            Joined* out) {
  out->name = prefix_of(switches) + "/" + switches.at;
  return plug_into_fabric(switches.topology, switches.at, &out->wire);  // it logs
}

[[nodiscard]] int join_wire(const EmuConfig& config, const name::Shm& shm, Joined* out) {
  wire::shm::Seat seat;
  seat.fabric = shm.fabric;
  seat.id = config.id;
  seat.id_step = config.id_step;
  seat.ids = config.model.queue_pairs;
  seat.board = shm.board;
  seat.queue_pair = shm.queue_pair;
  seat.pull = shm.pull;
  return join_member<wire::shm::ShmWire>(prefix_of(shm) + shm.fabric, "", seat, out);
}

[[nodiscard]] int join_wire(const EmuConfig& config, const name::Udp& udp, Joined* out) {
  wire::udp::Seat seat;
  seat.fabric = udp.fabric;
  seat.id = config.id;
  seat.ids = config.model.queue_pairs;
  seat.members = udp.members;
  seat.bind = udp.bind;
  seat.port = udp.port;
  seat.patience_s = udp.patience_s;
  seat.faults = {udp.loss_seed, udp.loss_rate};
  const char* const key = std::getenv("RIO_UDP_KEY");
  seat.key = key == nullptr ? "" : key;
  const std::string card = prefix_of(udp) + udp.fabric;
  return join_member<wire::udp::UdpWire>(card, (card + ": ").c_str(), seat, out);
}

[[nodiscard]] int join_wire(const EmuConfig& config, const name::Relay& relay, Joined* out) {
  const wire::relay::Ticket ticket{relay.name, relay.board, config.id, config.model.queue_pairs};
  return join_member<wire::relay::RelayWire>(prefix_of(relay) + relay.name, "", ticket, out);
}

}  // namespace

int join(const EmuConfig& config, Joined* out) {
  Joined joined;
  joined.queue_pairs = config.model.queue_pairs;
  const int rc =
      std::visit([&](const auto& wire) { return join_wire(config, wire, &joined); }, config.wire);
  if (rc == 0) {
    *out = std::move(joined);
  }
  return rc;
}

}  // namespace rio::pmd
