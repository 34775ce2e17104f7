/// @file
/// Reads and writes of peers' memory by the DMA queue of a card, through windows for which the
/// endpoint has asked the memory's owners.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/msg/message_port.hpp"
#include "lib/ofi/ask.hpp"
#include "lib/ofi/bindings.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

/// A local buffer, as the card reaches it.
struct LocalBytes {
  pmd::IovaRun slot_run = {};
  const pmd::IovaRun* run = nullptr;  ///< of the first byte
  uint8_t* at = nullptr;
  uint8_t* slot = nullptr;                   ///< the bytes are copied to this slot; if null:
  const pmd::mem::Region* region = nullptr;  ///< the registered region that holds them
};

/// The way by one rail. Under a Guard.
class CardWay {
 public:
  /// Call first. @param border reads and writes of more bytes do not go by the card; or
  /// job::kRmaBorderOfPath.
  void start(msg::MessagePort& port, msg::Rail& rail, uint64_t border) {
    port_ = &port;
    rail_ = rail.dma != nullptr ? &rail : nullptr;
    border_ = border;
  }

  /// Whether the card may do the transfer at all. @param to the peer's context for memory.
  [[nodiscard]] bool may(tag::Address to, uint64_t bytes) const {
    return rail_ != nullptr && !rail_->dma->gone() && bytes - 1 < border_ &&
           tag::dest_id_of(to) != port_->dest_id();
  }
  /// Hot. Find the window for an access. @param right FI_REMOTE_READ or FI_REMOTE_WRITE. @param
  /// asks set if the caller has to ask the owner for its window now, and then call on_reply().
  /// @return the address for the card; 0: no window is known, or the access is not inside of it.
  [[nodiscard]] uint64_t find(tag::Address to, uint64_t key, uint64_t address, uint64_t bytes,
                              uint64_t right, bool* asks);
  /// Record the owner's answer. @param bytes_max of an access through the window. @param reply
  /// null: there is no window.
  void on_reply(tag::Address to, uint64_t key, uint64_t bytes_max, const WindowReply* reply);
  /// Forget a window that no longer exists.
  void forget(tag::Address to, uint64_t key) { known(to, key).state = State::kUnknown; }

  /// Make a buffer reachable. @param must_copy the user's memory may change before the card reads
  /// it: the bytes go to a slot. @return false: the card cannot reach them.
  [[nodiscard]] bool reach(void* at, uint64_t bytes, bool must_copy, LocalBytes* out);
  void put(LocalBytes& local);

  /// Hot. Post a transfer to the DMA queue. @return false: the addresses are not aligned as the
  /// card requires, or its queue has stopped.
  [[nodiscard]] bool start(msg::DmaTransfer& transfer) {
    if (!rail_->dma->takes(transfer.rio_addr, transfer.va) || !rail_->dma->start(transfer)) {
      return false;
    }
    ++under_way_;
    bytes_under_way_ += transfer.wanted_bytes;
    return true;
  }
  /// A transfer has ended.
  void end(const msg::DmaTransfer& transfer) {
    --under_way_;
    bytes_under_way_ -= transfer.wanted_bytes;
  }
  void progress() {
    if (rail_ != nullptr) {
      rail_->dma->progress();
    }
  }
  /// Hot. Whether progress() would end transfers that the card has done.
  [[nodiscard]] bool has_done() const { return rail_ != nullptr && rail_->dma->has_done(); }
  /// Stop the DMA queue if transfers of this endpoint are under way there, for good.
  void stop() {
    if (under_way_ != 0) {
      static_cast<void>(rail_->dma->stop());
    }
  }
  [[nodiscard]] uint64_t bytes_under_way() const { return bytes_under_way_; }
  /// Whether the card moves long data straight to and from a peer's memory.
  [[nodiscard]] bool moves_directly(uint32_t dest_id) const {
    return rail_->endpoint.moves_directly(dest_id);
  }

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
    uint32_t session = 0;  // of the link, when the window was learnt
    uint32_t uses = 0;     // since the owner said that there is no window
    const msg::Link* link = nullptr;
    uint64_t bytes_max = 0;  // of an access through the window
    WindowReply window = {};
  };

  [[nodiscard]] Known& known(tag::Address to, uint64_t key);
  [[nodiscard]] bool make_slots();

  msg::MessagePort* port_ = nullptr;
  msg::Rail* rail_ = nullptr;  // null: nothing goes by the card
  uint64_t border_ = 0;
  uint32_t under_way_ = 0;  // transfers
  uint64_t bytes_under_way_ = 0;
  Place last_place_ = {};
  Known* last_ = nullptr;
  std::unordered_map<Place, Known, PlaceHash> known_;
  bool slots_tried_ = false;
  std::vector<uint8_t*> slots_;  // that are free
  uint64_t slot_iova_minus_va_ = 0;
};

}  // namespace rio::ofi
