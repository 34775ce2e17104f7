/// @file
/// A wire between processes. Each has its own card, and shares memory with each partner that it
/// talks to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fpga/wire/routed_member.hpp"
#include "fpga/wire/shm/exchange.hpp"

namespace rio::wire::shm {

/// A member of a fabric, as the model's wire. Partners connect when one first sends to the other.
/// Nothing that they write is trusted, and they cannot write our memory.
class ShmWire final : public RoutedMember {
 public:
  /// Join. Starts the thread of the member. @return as Directory::join(); `error` gives the cause.
  [[nodiscard]] static int join(const Seat& seat, std::unique_ptr<ShmWire>* out,
                                std::string* error);
  ~ShmWire() override;
  ShmWire(const ShmWire&) = delete;
  ShmWire& operator=(const ShmWire&) = delete;

  [[nodiscard]] uint32_t first_id() const override { return exchange_->directory().first_id(); }
  [[nodiscard]] uint32_t ids() const override { return exchange_->directory().ids(); }
  void set_poke(Poke poke, void* ctx) override { exchange_->set_poke(poke, ctx); }
  void poke_soon() override { exchange_->poke_soon(); }
  /// Tell partners whether they have to ring, since the member is asleep.
  void set_asleep(bool asleep) override;
  [[nodiscard]] bool asleep() const override { return asleep_.load(std::memory_order_acquire); }
  [[nodiscard]] bool next_trouble(std::string* text) override;
  [[nodiscard]] int why_unreachable(uint32_t dest_id) override {
    return exchange_->why_unreachable(dest_id);
  }

  [[nodiscard]] bool link_up() const override { return true; }
  void pump(uint64_t now_ns) override;
  void check_partners(uint64_t now_ns, uint64_t response_ns) override;

 private:
  struct End;

  ShmWire();
  [[nodiscard]] bool find_member(uint32_t dest_id) override;
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
  std::unique_ptr<Exchange> exchange_;  // last, since its thread uses the rest
};

}  // namespace rio::wire::shm
