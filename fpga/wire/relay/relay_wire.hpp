/// @file
/// A process of a board behind a relay, as the model's wire. Its card's frames go up to the host as
/// packets, and frames for it come down.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fpga/model/frame_ring.hpp"
#include "fpga/wire/member.hpp"
#include "fpga/wire/relay/control_channel.hpp"
#include "fpga/wire/relay/packet.hpp"

namespace rio::wire::relay {

class RelayWire final : public Member {
 public:
  /// Join. Starts the thread of the channel. @return as ControlChannel::join(); `error` gives the
  /// cause.
  [[nodiscard]] static int join(const Ticket& ticket, std::unique_ptr<RelayWire>* out,
                                std::string* error);
  ~RelayWire() override;
  RelayWire(const RelayWire&) = delete;
  RelayWire& operator=(const RelayWire&) = delete;

  // Member
  [[nodiscard]] uint32_t first_id() const override { return channel_->seat().first_id; }
  [[nodiscard]] uint32_t ids() const override { return channel_->seat().ids; }

  // Wire
  [[nodiscard]] bool link_up() const override { return !lost_; }
  void pump(uint64_t now_ns) override;
  void check_partners(uint64_t now_ns, uint64_t response_ns) override;

 private:
  struct Peer;

  RelayWire();
  [[nodiscard]] bool find_member(uint32_t dest_id) override;
  void add_inbound(std::vector<model::Inbound>* list) override;
  void on_asleep(bool asleep) override;
  void on_news(const Control& news);
  void came(const Control& news);
  void gone(Peer& peer);
  void lose(const std::string& why);
  void flush(Peer& peer, uint32_t lane);
  bool take(uint32_t lane);
  bool take_packet(uint32_t lane, const model::InFrame& in, const char** why);
  bool take_data(uint32_t lane, const model::InFrame& in, Peer& peer, const char** why);
  [[nodiscard]] Peer* peer_of(uint32_t process);

  std::atomic<bool> news_{false};
  std::atomic<bool> lost_{false};
  std::unordered_map<uint32_t, std::unique_ptr<Peer>> peers_;  // by process
  std::vector<std::unique_ptr<Peer>> past_;  // gone; the card may still have their ways
  std::unordered_set<uint32_t> former_;      // processes that are gone: their frames are dropped
  std::unique_ptr<model::RingBox> in_[kLanes];
  std::unique_ptr<Rings> rings_;  // to and from the host
  std::vector<uint8_t> scratch_;
  std::unique_ptr<ControlChannel> channel_;  // last, since its thread uses the rest
};

}  // namespace rio::wire::relay
