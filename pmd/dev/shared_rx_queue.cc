#include "pmd/dev/shared_rx_queue.hpp"

#include <array>
#include <cstring>

#include "pmd/dev/reap.hpp"

namespace rio::pmd {
namespace {

using Place = regs::shared_cpl::Place;

// Written as whole words.
static_assert(offsetof(RxMessage, source) == 8 && offsetof(RxMessage, dest_id) == 12 &&
              offsetof(RxMessage, arrival) == 16 && offsetof(RxMessage, time_ticks) == 20 &&
              offsetof(regs::SharedCpl, source) == 0 && offsetof(regs::SharedCpl, dest_id) == 4 &&
              offsetof(regs::SharedCpl, arrival) == 16 && offsetof(regs::SharedCpl, time) == 20);
static_assert(offsetof(RxMessage, length_bytes) == 24 && offsetof(RxMessage, mbox) == 26 &&
              offsetof(RxMessage, letter) == 27 && offsetof(RxMessage, segments) == 28 &&
              offsetof(RxMessage, status) == 29);
constexpr size_t kPairBytes = 8;

// RxMessage's mbox and letter, above 16 bits of length, indexed by the completion's `place`.
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
  struct Raw {
    uint64_t last_words;
    uint16_t length;
  };
  static Raw load(const Cpl& cpl) {
    const uint64_t last_words = load_last_words(cpl);
    return {last_words, __atomic_load_n(&cpl.length, __ATOMIC_RELAXED)};
  }
  static uint64_t last(Raw raw) { return raw.last_words; }
  static uint32_t bytes(Raw raw, uint32_t /*size*/) { return raw.length; }
  static uint32_t misfit(Raw raw, uint32_t /*size*/) {
    return regs::kMessageBytesMax - uint32_t{raw.length};
  }
  static void fill(const Cpl& cpl, Raw raw, Status status, uint64_t cookie, Done* out) {
    auto* const to = reinterpret_cast<uint8_t*>(out);
    const auto* const from = reinterpret_cast<const uint8_t*>(&cpl);
    // Read before anything is written, since the compiler cannot know that they do not overlap.
    const uint32_t length_mbox_letter = raw.length | kMboxLetter[cpl.place];
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

// Fills one entry and its cookie. If a bit in `addrs` is wrong, they are not used.
[[gnu::always_inline]] inline void fill(const RxBuffer& buffer, regs::SharedDesc* entry,
                                        uint64_t* cookie, uint64_t* addrs) {
  const uint64_t iova = buffer.iova;
  const uint64_t whole_cookie = buffer.cookie;
  *addrs |= iova;
  keep_in_register(*addrs);
  entry->addr = iova;
  *cookie = whole_cookie;
}

}  // namespace

int SharedRxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                          SharedPtr<SharedRxQueue>* out) {
  return make_queue(bus, out, [&](SharedRxQueue& queue) {
    queue.addr_misaligned_ = caps.shared_addr_align - 1;
    return queue.start<regs::SharedCpl>(bus, caps, config, &queue.entries_);
  });
}

uint32_t SharedRxQueue::post_run(const RxBuffer* buffers, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::SharedDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint64_t misaligned = addr_misaligned_;
  size_t k = 0;
  for (; k + 8 <= n; k += 8) {
    uint64_t addrs = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) {
      fill(buffers[k + i], &entries[k + i], &cookies[k + i], &addrs);
    }
    if ((addrs & misaligned) != 0) [[unlikely]] {
      break;  // the rest one by one
    }
  }
  for (; k < n; ++k) {
    uint64_t addr = 0;
    fill(buffers[k], &entries[k], &cookies[k], &addr);
    if ((addr & misaligned) != 0) [[unlikely]] {
      break;
    }
  }
  if (k < n) [[unlikely]] {
    refuse(Reject::kAlignment);
  }
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

uint16_t SharedRxQueue::post(const RxBuffer* buffers, uint16_t n) {
  return post_runs(buffers, n,
                   [this](const auto* first, size_t count) { return post_run(first, count); });
}

uint16_t SharedRxQueue::burst(RxMessage* out, uint16_t n) {
  return reap_burst<SharedReap>(out, n);
}

}  // namespace rio::pmd
