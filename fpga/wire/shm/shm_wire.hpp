/// @file
/// A wire between processes: each has its own card, and shared memory with each other that it talks
/// to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fpga/wire/routed_member.hpp"
#include "fpga/wire/shm/exchange.hpp"

namespace rio::wire::shm {

/// A member of a fabric, as the model's wire. Partners are connected when something is first sent
/// to them, or by them. Nothing that they write is believed, and they cannot write what is ours.
class ShmWire final : public RoutedMember {
 public:
  /// Join. Starts the thread of the member. @return as Directory::join(); `error` says why.
  [[nodiscard]] static int join(const Seat& seat, std::unique_ptr<ShmWire>* out,
                                std::string* error);
  ~ShmWire() override;
  ShmWire(const ShmWire&) = delete;
  ShmWire& operator=(const ShmWire&) = delete;

  [[nodiscard]] uint32_t first_id() const override { return exchange_->directory().first_id(); }
  [[nodiscard]] uint32_t ids() const override { return exchange_->directory().ids(); }
  void set_poke(Poke poke, void* ctx) override { exchange_->set_poke(poke, ctx); }
  void poke_soon() override { exchange_->poke_soon(); }
  /// Partners ring for what they send while the member is asleep.
  void set_asleep(bool asleep) override;
  [[nodiscard]] bool asleep() const override { return asleep_.load(std::memory_order_acquire); }
  [[nodiscard]] bool next_trouble(std::string* text) override;
  [[nodiscard]] int why_unreachable(uint32_t dest_id) override {
    return exchange_->why_unreachable(dest_id);
  }

  [[nodiscard]] bool link_up() const override { return true; }
  void pump(uint64_t now_ns) override;
  void look_at_partners(uint64_t now_ns, uint64_t response_ns) override;

 private:
  struct End;

  ShmWire();
  [[nodiscard]] bool look_for(uint32_t dest_id) override;
  void add_inbound(std::vector<model::Inbound>* list) override;
  void on_news(const News& news);
  void connect(const std::shared_ptr<Link>& link);
  void leave(End& end);
  void close(End& end);
  [[nodiscard]] bool over(End& end);
  void tell_copies(const End& end);

  bool pull_ = true;
  std::atomic<bool> asleep_{false};
  std::vector<std::unique_ptr<End>> ends_;
  std::unique_ptr<Exchange> exchange_;  // last: its thread uses the rest
};

}  // namespace rio::wire::shm
