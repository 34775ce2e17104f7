/// @file
/// One card of rio-cardsim: a model card, its attachment, and its counts.
#pragma once

#include <functional>
#include <memory>

#include "fpga/cardsim/attachment.hpp"
#include "fpga/cardsim/card_spec.hpp"
#include "fpga/model/card.hpp"

namespace rio::cardsim {

/// Counts of a card over all its peers.
struct CardCounts {
  uint64_t port[8] = {};               ///< model::PortCounts, in that order
  uint64_t faults[8] = {};             ///< injected, by bit of model::Fault
  uint64_t refused = 0;                ///< accesses to memory that was not mapped
  uint64_t first_refused_address = 0;  ///< of the first such access, if there was one
};

/// A card. Used by the thread of the service loop only.
class SimCard {
 public:
  /// Gives a card its end of the wire, anew after the last one was destroyed.
  using Plug = std::function<std::unique_ptr<model::Wire>()>;

  /// Create a card; then sockets listen and files exist. @return 0, or -errno, reported on stderr.
  [[nodiscard]] static int create(const CardSpec& spec, Plug plug, std::unique_ptr<SimCard>* out);

  /// Called for all cards before any step(), since they read each other's memory.
  void begin_turn() {
    for (const auto& attachment : attachments_) {
      attachment->begin_turn();
    }
  }
  void step() { card_->step(); }
  /// Serve the peers. When that of the physical function goes, the card goes with it, and the next
  /// peer gets a fresh one; that of a virtual function leaves the function behind, reset.
  /// @return 0, or -errno, reported on stderr.
  [[nodiscard]] int serve();

  /// Whether the physical function had a peer, and has none now.
  [[nodiscard]] bool left() const { return left_; }
  [[nodiscard]] model::Card& card() { return *card_; }
  /// The physical function's, then those of the virtual functions.
  [[nodiscard]] const std::vector<std::unique_ptr<Attachment>>& attachments() const {
    return attachments_;
  }
  [[nodiscard]] const CardSpec& spec() const { return spec_; }
  [[nodiscard]] CardCounts counts();

 private:
  SimCard(CardSpec spec, Plug plug) : spec_(std::move(spec)), plug_(std::move(plug)) {}
  [[nodiscard]] int attach_function(const Way& way);
  [[nodiscard]] int power_on();
  [[nodiscard]] int serve_vf(uint32_t vf);

  CardSpec spec_;
  Plug plug_;
  model::HostClock clock_;
  std::vector<std::unique_ptr<Attachment>> attachments_;
  std::unique_ptr<model::Card> card_;  // uses the members above: destroyed before them
  CardCounts earlier_;                 // counts of cards that went with their peers
  bool left_ = false;
};

}  // namespace rio::cardsim
