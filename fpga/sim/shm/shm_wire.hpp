/// @file
/// A wire between processes: each has its own card, and shared memory with each other that it talks
/// to.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fpga/model/ring_box.hpp"
#include "fpga/model/wire.hpp"
#include "fpga/sim/shm/exchange.hpp"

namespace rio::sim::shm {

/// A member of a fabric, as the model's wire. Partners are connected when something is first sent
/// to them, or by them. Nothing that they write is believed, and they cannot write what is ours.
class ShmWire final : public model::Wire {
 public:
  /// Join. Starts the thread of the member. @return as Directory::join(); `error` says why.
  [[nodiscard]] static int join(const Seat& seat, std::unique_ptr<ShmWire>* out,
                                std::string* error);
  ~ShmWire() override;
  ShmWire(const ShmWire&) = delete;
  ShmWire& operator=(const ShmWire&) = delete;

  /// The first destID of the card, and how many it has.
  [[nodiscard]] uint32_t first_id() const { return exchange_->directory().first_id(); }
  [[nodiscard]] uint32_t ids() const { return exchange_->directory().ids(); }
  /// As Exchange::set_poke(): the card should be stepped.
  void set_poke(Exchange::Poke poke, void* ctx) { exchange_->set_poke(poke, ctx); }
  /// Let the thread call it. Any thread.
  void poke_soon() { exchange_->poke_soon(); }

  /// Partners whose long messages have to be copied twice, since the system forbids to read their
  /// memory. Any thread.
  [[nodiscard]] uint32_t copied_twice() const {
    return copied_twice_.load(std::memory_order_relaxed);
  }

  /// As Exchange::lacking().
  [[nodiscard]] int lacking() const { return exchange_->lacking(); }

  /// Nobody looks at what comes, or somebody does again: partners ring for what they send, and
  /// Poke is called. What came before this returns has to be looked at once more. With the card
  /// between two steps, or by who steps it.
  void set_asleep(bool asleep);
  /// Any thread.
  [[nodiscard]] bool asleep() const { return asleep_.load(std::memory_order_acquire); }

  model::Outbound* route(uint32_t dest_id) override;
  [[nodiscard]] bool link_up() const override { return true; }
  void pump(uint64_t now_ns) override;
  [[nodiscard]] bool next_change(model::PartnerChange* out) override;
  void look_at_partners(uint64_t now_ns, uint64_t response_ns) override;

 private:
  class DoorBell;
  struct End;
  struct Way;

  ShmWire();
  Way& way(uint32_t dest_id);
  void on_news(const News& news);
  void connect(const std::shared_ptr<Link>& link);
  void leave(End& end);
  void close(End& end);
  [[nodiscard]] bool over(End& end);
  void list_inbound();
  void tell(Way& way, bool here);

  bool pull_ = true;
  std::atomic<uint32_t> copied_twice_{0};
  std::atomic<bool> asleep_{false};
  model::FrameRingShared nothing_;
  model::FrameWriter closed_{&nothing_, nullptr, 0};
  std::unordered_map<uint32_t, std::unique_ptr<Way>> ways_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<model::Inbound> inbounds_;
  std::deque<model::PartnerChange> changes_;
  std::unique_ptr<model::RingBox> self_requests_;  // for those that send to themselves
  std::unique_ptr<model::RingBox> self_responses_;
  std::unique_ptr<Exchange> exchange_;  // last: its thread uses the rest
};

}  // namespace rio::sim::shm
