#include "fpga/model/wire.hpp"

#include <atomic>
#include <vector>

namespace rio::model {
namespace {

constexpr uint32_t kRequestRingBytes = 64 * 1024;
constexpr uint32_t kResponseRingBytes = 32 * 1024;

/// Memory and both ends of one ring.
struct RingBox {
  explicit RingBox(uint32_t bytes)
      : memory(bytes / sizeof(Chunk)),
        writer(&shared, reinterpret_cast<uint8_t*>(memory.data()), bytes),
        reader(&shared, reinterpret_cast<const uint8_t*>(memory.data()), bytes) {}

  struct alignas(64) Chunk {
    uint8_t bytes[64];
  };
  FrameRingShared shared;
  std::vector<Chunk> memory;
  alignas(64) FrameWriter writer;
  alignas(64) FrameReader reader;
};

/// One direction of a cable.
struct Direction {
  RingBox requests{kRequestRingBytes};
  RingBox responses{kResponseRingBytes};

  Outbound outbound() { return {&requests.writer, &responses.writer}; }
  Inbound inbound() { return {&requests.reader, &responses.reader}; }
};

class LoopWire final : public Wire {
 public:
  Outbound* route(uint32_t /*dest_id*/) override { return &out_; }
  std::span<Inbound> inbound() override { return {&in_, 1}; }
  bool link_up() const override { return true; }

 private:
  Direction direction_;
  Outbound out_ = direction_.outbound();
  Inbound in_ = direction_.inbound();
};

class CableImpl final : public Cable, public std::enable_shared_from_this<CableImpl> {
 public:
  std::unique_ptr<Wire> plug(int side) override;

  Direction direction[2];
  std::atomic<bool> plugged[2] = {false, false};
};

class CableEnd final : public Wire {
 public:
  CableEnd(std::shared_ptr<CableImpl> cable, int side)
      : cable_(std::move(cable)),
        side_(side),
        out_(cable_->direction[side].outbound()),
        in_(cable_->direction[1 - side].inbound()) {
    set_plugged(true);
  }
  ~CableEnd() override { set_plugged(false); }
  CableEnd(const CableEnd&) = delete;
  CableEnd& operator=(const CableEnd&) = delete;

  Outbound* route(uint32_t /*dest_id*/) override { return &out_; }
  std::span<Inbound> inbound() override { return {&in_, 1}; }
  bool link_up() const override {
    // acquire: the rings as the other side left them; pairs with set_plugged.
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

std::unique_ptr<Wire> make_loop_wire() { return std::make_unique<LoopWire>(); }

std::shared_ptr<Cable> make_cable() { return std::make_shared<CableImpl>(); }

}  // namespace rio::model
