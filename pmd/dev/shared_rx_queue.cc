#include "pmd/dev/shared_rx_queue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "pmd/dev/reap.hpp"

namespace rio::pmd {
namespace {

using Place = regs::shared_cpl::Place;

// Whole words at once.
static_assert(offsetof(RxMessage, source) == 8 && offsetof(RxMessage, dest_id) == 12 &&
              offsetof(RxMessage, arrival) == 16 && offsetof(RxMessage, time_ticks) == 20 &&
              offsetof(regs::SharedCpl, source) == 0 && offsetof(regs::SharedCpl, dest_id) == 4 &&
              offsetof(regs::SharedCpl, arrival) == 16 && offsetof(regs::SharedCpl, time) == 20);
static_assert(offsetof(RxMessage, length_bytes) == 24 && offsetof(RxMessage, mbox) == 26 &&
              offsetof(RxMessage, letter) == 27 && offsetof(RxMessage, segments) == 28 &&
              offsetof(RxMessage, status) == 29);
constexpr size_t kPairBytes = 8;

// RxMessage's mbox and letter above 16 bits of length, by the completion's place.
constexpr auto kMboxLetter = [] {
  std::array<uint32_t, 256> words{};
  for (uint32_t place = 0; place < words.size(); ++place) {
    words[place] = Place::mbox.get(place) << 16 | Place::letter.get(place) << 24;
  }
  return words;
}();

// For reap_burst(); every buffer holds kMessageBytesMax.
struct SharedReap {
  using Cpl = regs::SharedCpl;
  using Done = RxMessage;
  static uint32_t size(const uint32_t* /*sizes*/, size_t /*slot*/) {
    return regs::kMessageBytesMax;
  }
  using Raw = uint16_t;  // the length, read once
  static Raw load(const Cpl& cpl) { return __atomic_load_n(&cpl.length, __ATOMIC_RELAXED); }
  static uint32_t bytes(Raw raw, uint32_t /*size*/) { return raw; }
  static void fill(const Cpl& cpl, Raw raw, Status status, uint64_t cookie, Done* out) {
    auto* const to = reinterpret_cast<uint8_t*>(out);
    const auto* const from = reinterpret_cast<const uint8_t*>(&cpl);
    // Read before anything is written, since the compiler cannot know that they lie apart.
    const uint32_t length_mbox_letter = raw | kMboxLetter[cpl.place];
    const auto segments_status =
        static_cast<uint16_t>(cpl.segments | static_cast<uint32_t>(status) << 8);
    std::memcpy(to + offsetof(Done, length_bytes), &length_mbox_letter, sizeof(uint32_t));
    std::memcpy(to + offsetof(Done, segments), &segments_status, sizeof(uint16_t));
    std::memcpy(to + offsetof(Done, source), from + offsetof(Cpl, source), kPairBytes);
    std::memcpy(to + offsetof(Done, arrival), from + offsetof(Cpl, arrival), kPairBytes);
    out->cookie = cookie;
  }
  static void spoil(Done* out) {
    out->status = Status::kFormat;
    out->length_bytes = 0;
  }
};

// One buffer that is aligned.
[[nodiscard, gnu::always_inline]] inline bool fill(const RxBuffer& buffer, uint64_t misaligned,
                                                   regs::SharedDesc* entry, uint64_t* cookie) {
  if ((buffer.iova & misaligned) != 0) [[unlikely]] {
    return false;
  }
  entry->addr = buffer.iova;
  *cookie = buffer.cookie;
  return true;
}

}  // namespace

int SharedRxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                          std::unique_ptr<SharedRxQueue>* out) {
  std::unique_ptr<SharedRxQueue> queue(new (std::nothrow) SharedRxQueue);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error =
          queue->start(bus, caps, config, {sizeof(regs::SharedDesc), sizeof(regs::SharedCpl)});
      error != 0) {
    return error;
  }
  queue->entries_ = static_cast<regs::SharedDesc*>(queue->ring_.entries());
  queue->addr_misaligned_ = caps.shared_addr_align - 1;
  *out = std::move(queue);
  return 0;
}

uint32_t SharedRxQueue::post_run(const RxBuffer* buffers, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::SharedDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint64_t misaligned = addr_misaligned_;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    if (!fill(buffers[k], misaligned, &entries[k], &cookies[k]) ||
        !fill(buffers[k + 1], misaligned, &entries[k + 1], &cookies[k + 1]) ||
        !fill(buffers[k + 2], misaligned, &entries[k + 2], &cookies[k + 2]) ||
        !fill(buffers[k + 3], misaligned, &entries[k + 3], &cookies[k + 3])) {
      break;  // one by one, again
    }
  }
  while (k < n && fill(buffers[k], misaligned, &entries[k], &cookies[k])) {
    ++k;
  }
  if (k < n) [[unlikely]] {
    refuse(Reject::kAlignment);
  }
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

uint16_t SharedRxQueue::post(const RxBuffer* buffers, uint16_t n) {
  begin_post();
  const uint32_t before = window_.head();
  uint32_t done = post_run(buffers, std::min<uint32_t>(n, window_.room_in_a_row()));
  if (done < n && last_reject_ == Reject::kNone) {  // the slots wrapped, or the ring is full
    done += post_run(buffers + done, std::min(n - done, window_.room_in_a_row()));
  }
  ring_doorbell(before);
  return static_cast<uint16_t>(done);
}

uint16_t SharedRxQueue::burst(RxMessage* out, uint16_t n) {
  return reap_burst<SharedReap>(out, n);
}

}  // namespace rio::pmd
