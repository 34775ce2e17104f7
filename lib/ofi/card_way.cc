#include "lib/ofi/card_way.hpp"

#include "lib/msg/registrations.hpp"

namespace rio::ofi {
namespace {

constexpr uint32_t kSlots = 64;
constexpr uint32_t kSlotBytes = 1024;
constexpr size_t kKnownMax = 4096;
constexpr uint32_t kAskAgain =
    1000;  // uses of a region without a window before its owner is asked again

}  // namespace

CardWay::Known& CardWay::known(tag::Address to, uint64_t key) {
  const Place place = {to, key};
  if (last_ != nullptr && place == last_place_) {
    return *last_;
  }
  if (known_.size() >= kKnownMax && !known_.contains(place)) {
    known_.clear();  // an owner that is still in use is asked once more
  }
  last_place_ = place;
  last_ = &known_[place];
  return *last_;
}

uint64_t CardWay::find(tag::Address to, uint64_t key, uint64_t address, uint64_t bytes,
                       uint64_t right, bool* asks) {
  Known& it = known(to, key);
  *asks = false;
  if (it.link == nullptr) {
    it.link = port_->link(tag::dest_id_of(to));
  }
  if (it.link == nullptr) {
    return 0;
  }
  // A window learnt in another session may belong to another process.
  const bool old = it.state != State::kAsked && it.session != it.link->session;
  const bool tried = it.state == State::kNone && ++it.uses < kAskAgain;
  if (it.state == State::kUnknown || old || (it.state == State::kNone && !tried)) {
    it.state = State::kAsked;
    *asks = true;
  }
  if (it.state != State::kOpen || bytes > it.bytes_max) {
    return 0;
  }
  const WindowReply& window = it.window;
  const uint64_t offset = address - window.first;
  const bool inside = offset <= window.bytes && bytes <= window.bytes - offset;
  return inside && (window.rights & right) != 0 ? window.rio_addr + offset : 0;
}

void CardWay::on_reply(tag::Address to, uint64_t key, uint64_t bytes_max,
                       const WindowReply* reply) {
  Known& it = known(to, key);
  it.link = port_->link(tag::dest_id_of(to));
  it.session = it.link != nullptr ? it.link->session : 0;
  it.state = reply == nullptr ? State::kUnknown : is_window(*reply) ? State::kOpen : State::kNone;
  it.uses = 0;
  it.bytes_max = bytes_max;
  it.window = reply != nullptr ? *reply : WindowReply{};
}

bool CardWay::make_slots() {
  if (!slots_tried_) {
    slots_tried_ = true;
    pmd::DmaMemory memory;
    if (rail_->endpoint.alloc(kSlots * kSlotBytes, kSlotBytes, &memory) == 0) {
      slots_.reserve(kSlots);
      for (uint32_t i = 0; i < kSlots; ++i) {
        slots_.push_back(static_cast<uint8_t*>(memory.va) + i * kSlotBytes);
      }
      slot_iova_minus_va_ = memory.iova - reinterpret_cast<uintptr_t>(memory.va);
    }
  }
  return !slots_.empty();
}

bool CardWay::reach(void* at, uint64_t bytes, bool must_copy, LocalBytes* out) {
  if (bytes <= kSlotBytes && (!slots_.empty() || make_slots())) {
    out->slot = slots_.back();
    slots_.pop_back();
    out->at = out->slot;
    out->slot_run = {out->slot, reinterpret_cast<uintptr_t>(out->slot) + slot_iova_minus_va_,
                     kSlotBytes};
    out->run = &out->slot_run;
    return true;
  }
  if (must_copy) {
    return false;
  }
  out->region = rail_->memory.get(at, bytes);
  if (out->region == nullptr) {
    return false;
  }
  out->at = static_cast<uint8_t*>(at);
  out->run = msg::run_of(*out->region, at);
  return true;
}

void CardWay::put(LocalBytes& local) {
  if (local.slot != nullptr) {
    slots_.push_back(local.slot);
  }
  if (local.region != nullptr) {
    rail_->memory.put(local.region);
  }
  local = {};
}

}  // namespace rio::ofi
