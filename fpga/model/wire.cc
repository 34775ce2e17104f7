#include "fpga/model/wire.hpp"

#include <atomic>
#include <thread>

#include "fpga/model/frame_ring.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kRequestRingBytes = 64 * 1024;
constexpr uint32_t kResponseRingBytes = 32 * 1024;

/// One direction of a cable.
struct Direction {
  RingBox requests{kRequestRingBytes};
  RingBox responses{kResponseRingBytes};

  Outbound outbound() { return {&requests.writer, &responses.writer}; }
  Inbound inbound() { return {&requests.reader, &responses.reader}; }
};

class LoopWire final : public Wire {
 public:
  LoopWire() {
    inbound_ = {&in_, 1};
    neighbour_thread_ = &thread_;
  }
  void attach(Neighbour* card) override { self_ = card; }
  void stepped_by(const char* thread) override { thread_.store(thread, std::memory_order_relaxed); }
  Core* enter_neighbour() override { return self_ == nullptr ? nullptr : self_->enter(true); }
  void leave_neighbour() override { self_->leave(true); }
  Outbound* route(uint32_t /*dest_id*/) override { return &out_; }
  bool link_up() const override { return true; }

 private:
  Neighbour* self_ = nullptr;
  std::atomic<const char*> thread_{nullptr};
  Direction direction_;
  Outbound out_ = direction_.outbound();
  Inbound in_ = direction_.inbound();
};

class CableImpl final : public Cable, public std::enable_shared_from_this<CableImpl> {
 public:
  std::unique_ptr<Wire> plug(int side) override;

  /// One side of the cable. It has a cache line of its own, because the other side reads `thread`
  /// with each burst.
  struct alignas(64) Slot {
    std::atomic<const char*> thread{nullptr};
    std::atomic<bool> busy{false};  ///< lock, held while the other side works on this card
    Neighbour* card = nullptr;
  };

  Direction direction[2];
  std::atomic<bool> plugged[2] = {false, false};
  Slot slot[2];
};

class CableEnd final : public Wire {
 public:
  CableEnd(std::shared_ptr<CableImpl> cable, int side)
      : cable_(std::move(cable)),
        side_(side),
        out_(cable_->direction[side].outbound()),
        in_(cable_->direction[1 - side].inbound()) {
    inbound_ = {&in_, 1};
    neighbour_thread_ = &cable_->slot[1 - side].thread;
    set_plugged(true);
  }
  ~CableEnd() override { set_plugged(false); }
  CableEnd(const CableEnd&) = delete;
  CableEnd& operator=(const CableEnd&) = delete;

  void attach(Neighbour* card) override {
    CableImpl::Slot& mine = cable_->slot[side_];
    // acquire: the other side has left the card; pairs with the release in leave_neighbour.
    while (mine.busy.exchange(true, std::memory_order_acquire)) {
      std::this_thread::yield();
    }
    mine.card = card;
    mine.busy.store(false, std::memory_order_release);
  }
  void stepped_by(const char* thread) override {
    cable_->slot[side_].thread.store(thread, std::memory_order_relaxed);
  }
  Core* enter_neighbour() override {
    CableImpl::Slot& other = cable_->slot[1 - side_];
    // acquire: pairs with the release in attach and leave_neighbour.
    if (other.busy.exchange(true, std::memory_order_acquire)) {
      return nullptr;
    }
    Core* core = other.card == nullptr ? nullptr : other.card->enter(false);
    if (core == nullptr) {
      other.busy.store(false, std::memory_order_release);
    }
    return core;
  }
  void leave_neighbour() override {
    CableImpl::Slot& other = cable_->slot[1 - side_];
    other.card->leave(false);
    other.busy.store(false, std::memory_order_release);  // pairs with enter_neighbour, attach
  }

  Outbound* route(uint32_t /*dest_id*/) override { return &out_; }
  bool link_up() const override {
    // acquire: the state in which the other side left the rings; pairs with set_plugged.
    return cable_->plugged[1 - side_].load(std::memory_order_acquire);
  }

 private:
  void set_plugged(bool plugged) {
    // release: pairs with link_up.
    cable_->plugged[side_].store(plugged, std::memory_order_release);
  }

  std::shared_ptr<CableImpl> cable_;
  int side_;
  Outbound out_;
  Inbound in_;
};

std::unique_ptr<Wire> CableImpl::plug(int side) {
  return std::make_unique<CableEnd>(shared_from_this(), side);
}

}  // namespace

std::unique_ptr<Wire> make_loop_wire() {
  return std::make_unique<LoopWire>();
}

std::shared_ptr<Cable> make_cable() {
  return std::make_shared<CableImpl>();
}

}  // namespace rio::model
