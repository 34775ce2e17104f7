/// @file
/// A wire between processes. Each has its own card, and shares memory with each partner that it
/// talks to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fpga/wire/member.hpp"
#include "fpga/wire/shm/exchange.hpp"

namespace rio::wire::shm {

/// A member of a fabric, as the model's wire. Partners connect when one first sends to the other.
/// Nothing that they write is trusted, and they cannot write our memory.
class ShmWire final : public Member {
 public:
  /// Join. Starts the thread of the member. @return as Directory::join(); `error` gives the cause.
  [[nodiscard]] static int join(const Seat& seat, std::unique_ptr<ShmWire>* out,
                                std::string* error);
  ~ShmWire() override;
  ShmWire(const ShmWire&) = delete;
  ShmWire& operator=(const ShmWire&) = delete;

  [[nodiscard]] uint32_t first_id() const override { return exchange_->directory().first_id(); }
  [[nodiscard]] uint32_t ids() const override { return exchange_->directory().ids(); }

  [[nodiscard]] bool link_up() const override { return true; }
  void pump(uint64_t now_ns) override;
  void check_partners(uint64_t now_ns, uint64_t response_ns) override;
  void on_unmapped() override;
  [[nodiscard]] uint64_t lease_number() const override { return lease_; }
  void end_leases() override;
  [[nodiscard]] uint64_t leased_packets() override;

 private:
  struct End;

  ShmWire();
  [[nodiscard]] bool find_member(uint32_t dest_id) override;
  void add_inbound(std::vector<model::Inbound>* list) override;
  void on_asleep(bool asleep) override;
  void on_event(const Event& event);
  void connect(const std::shared_ptr<Link>& link);
  void close(End& end);
  static void end_leases_of(const End& end);
  void count_leased(End& end);

  bool pull_ = true;
  uint64_t lease_ = 1;
  uint64_t leased_packets_ = 0;                       // counted since the last leased_packets()
  std::shared_ptr<const base::ReadableAreas> areas_;  // that partners may map; null: none
  std::vector<std::unique_ptr<End>> ends_;
  std::unique_ptr<Exchange> exchange_;  // last, since its thread uses the rest
};

}  // namespace rio::wire::shm
