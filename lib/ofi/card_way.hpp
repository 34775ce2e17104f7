/// @file
/// What an endpoint reads and writes in the memory of peers by its card's DMA queue: through
/// windows that it has asked their owners for.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/msg/port.hpp"
#include "lib/ofi/ask.hpp"
#include "lib/ofi/bindings.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

/// Bytes of this process as the card reaches them.
struct LocalBytes {
  pmd::IovaRun slot_run = {};
  const pmd::IovaRun* run = nullptr;  ///< of the first
  uint8_t* at = nullptr;
  uint8_t* slot = nullptr;                   ///< they are copied here; else
  const pmd::mem::Region* region = nullptr;  ///< they are registered
};

/// Under a Guard.
class CardWay {
 public:
  /// Nothing goes this way before. @param border longer reads and writes do not.
  void start(msg::Port& port, uint64_t border);

  /// Whether the card may do it at all. @param to of the peer's context for memory.
  [[nodiscard]] bool may(tag::Address to, uint64_t bytes) const {
    return port_ != nullptr && !port_->dma()->gone() && bytes - 1 < border_ &&
           tag::dest_id_of(to) != port_->dest_id();
  }
  /// Hot. @param right FI_REMOTE_READ or FI_REMOTE_WRITE. @param asks whether the owner is to be
  /// asked now where its window is: on_reply() has to be called.
  /// @return where it is for the card; 0: not known, or not in a window.
  [[nodiscard]] uint64_t find(tag::Address to, uint64_t key, uint64_t address, uint64_t bytes,
                              uint64_t right, bool* asks);
  /// @param reply null: there is none.
  void on_reply(tag::Address to, uint64_t key, const WindowReply* reply);
  /// The window is not there any more.
  void forget(tag::Address to, uint64_t key);

  /// @param copies few enough bytes may be copied; the caller's, of one piece, are where `at` is.
  /// @return false: the card cannot reach them.
  [[nodiscard]] bool reach(void* at, uint64_t bytes, bool must_copy, LocalBytes* out);
  void put(LocalBytes& local);

  /// Hot.
  [[nodiscard]] bool start(msg::DmaTransfer& transfer) { return port_->dma()->start(transfer); }
  void progress() { port_->dma()->progress(); }
  [[nodiscard]] msg::Port& port() { return *port_; }

 private:
  enum class State : uint8_t { kUnknown, kAsked, kOpen, kNone };
  struct Place {
    tag::Address owner;
    uint64_t key;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return (place.owner ^ place.key * 0x9E3779B97F4A7C15u) * 0x9E3779B97F4A7C15u >> 20;
    }
  };
  struct Known {
    State state = State::kUnknown;
    uint32_t session = 0;  // of the link, when it was learnt
    uint32_t uses = 0;     // since it was found that there is no window
    const msg::Link* link = nullptr;
    WindowReply window = {};
  };

  [[nodiscard]] Known& known(tag::Address to, uint64_t key);
  [[nodiscard]] bool make_slots();

  msg::Port* port_ = nullptr;  // null: the card has no DMA queue
  uint64_t border_ = 0;
  Place last_place_ = {};
  Known* last_ = nullptr;
  std::unordered_map<Place, Known, PlaceHash> known_;
  bool slots_tried_ = false;
  std::vector<uint8_t*> slots_;  // free ones
  uint64_t slot_iova_minus_va_ = 0;
};

}  // namespace rio::ofi
