#include "pmd/bus/emu/join.hpp"

#include <cstdlib>

#include "base/log.hpp"
#include "fpga/wire/relay/relay_wire.hpp"
#include "fpga/wire/shm/shm_wire.hpp"
#include "fpga/wire/udp/udp_wire.hpp"

namespace rio::pmd {
namespace {

/// Join a fabric of processes.
[[nodiscard]] int join_shm(const EmuConfig& config, std::unique_ptr<wire::Member>* out) {
  wire::shm::Seat seat;
  seat.fabric = config.fabric;
  seat.id = config.id;
  seat.id_step = config.id_step;
  seat.ids = config.queue_pairs;
  seat.board = config.board;
  seat.queue_pair = config.board_pair;
  seat.pull = config.pull;
  std::unique_ptr<wire::shm::ShmWire> wire;
  std::string error;
  if (const int rc = wire::shm::ShmWire::join(seat, &wire, &error); rc != 0) {
    base::log_error("emulated card: %s", error.c_str());
    return rc;
  }
  *out = std::move(wire);
  return 0;
}

/// Join a fabric of machines.
[[nodiscard]] int join_udp(const EmuConfig& config, std::unique_ptr<wire::Member>* out) {
  wire::udp::Seat seat;
  seat.fabric = config.udp_fabric;
  seat.id = config.id;
  seat.ids = config.queue_pairs;
  seat.members = config.members;
  seat.bind = config.bind;
  seat.port = config.port;
  seat.patience_s = config.patience_s;
  seat.faults = {config.loss_seed, config.loss_rate};
  const char* const key = std::getenv("RIO_UDP_KEY");
  seat.key = key == nullptr ? "" : key;
  std::unique_ptr<wire::udp::UdpWire> wire;
  std::string error;
  if (const int rc = wire::udp::UdpWire::join(seat, &wire, &error); rc != 0) {
    base::log_error("emulated card: udp:%s: %s", config.udp_fabric.c_str(), error.c_str());
    return rc;
  }
  *out = std::move(wire);
  return 0;
}

/// Join a relay's board.
[[nodiscard]] int join_relay(const EmuConfig& config, std::unique_ptr<wire::Member>* out) {
  std::unique_ptr<wire::relay::RelayWire> wire;
  std::string error;
  const wire::relay::Ticket ticket{config.relay, config.relay_board, config.id, config.queue_pairs};
  if (const int rc = wire::relay::RelayWire::join(ticket, &wire, &error); rc != 0) {
    base::log_error("emulated card: %s", error.c_str());
    return rc;
  }
  *out = std::move(wire);
  return 0;
}

}  // namespace

std::string kind_of(const EmuConfig& config) {
  if (!config.udp_fabric.empty()) {
    return "udp:" + config.udp_fabric;
  }
  if (!config.relay.empty()) {
    return "relay:" + config.relay;
  }
  return config.fabric.empty() ? "" : "shm:" + config.fabric;
}

int join(const EmuConfig& config, std::unique_ptr<wire::Member>* out) {
  if (!config.udp_fabric.empty()) {
    return join_udp(config, out);
  }
  return config.relay.empty() ? join_shm(config, out) : join_relay(config, out);
}

}  // namespace rio::pmd
