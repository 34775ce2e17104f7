#include "pmd/selftest/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "base/formatted.hpp"
#include "pmd/dev/names.hpp"

namespace rio::selftest {
namespace {

constexpr uint32_t kTurnsBetweenLooks = 1024;
constexpr uint32_t kRxBytes = 2 * End::kPageBytes;  // the buffer, and a guard behind it

constexpr uint32_t padded8(uint32_t len_bytes) {
  return (len_bytes + 7) & ~7u;
}

std::string describe(const MessageTrial& trial) {
  return "message of " + std::to_string(trial.len_bytes) + " bytes, mailbox " +
         std::to_string(trial.mbox) + ", segments of " + std::to_string(trial.ssize_bytes);
}

/// TxFlags' code of a segment size: 1 for 8 bytes; 0 for 256.
uint8_t ssize_flag(uint32_t ssize_bytes) {
  return ssize_bytes == regs::kSegmentBytesMax
             ? 0
             : static_cast<uint8_t>((std::countr_zero(ssize_bytes) - 2)
                                    << pmd::TxFlags::kSsizeShift);
}

}  // namespace

void check(int rc, const std::string& what) {
  if (rc != 0) {
    throw Fault(what + ": " + std::strerror(-rc), rc == -ENODEV ? rc : -EIO);
  }
}

void Image::put(const Pattern& pattern, uint32_t from, uint32_t to, uint32_t len_bytes,
                uint32_t padded_bytes) {
  for (uint32_t i = 0; i < padded_bytes; ++i) {
    bytes_[to + i] = i < len_bytes ? pattern.byte(from + i) : uint8_t{0};
  }
}

void Image::anything(uint32_t to, uint32_t len_bytes) {
  std::fill_n(bytes_.begin() + to, len_bytes, kAnything);
}

std::string Image::compare(const uint8_t* bytes) const {
  for (uint32_t i = 0; i < size(); ++i) {
    if (bytes_[i] != kAnything && bytes[i] != bytes_[i]) {
      return base::formatted("byte %u is 0x%02x, not 0x%02x", i, bytes[i],
                             static_cast<unsigned>(bytes_[i]));
    }
  }
  return "";
}

void Image::check(const uint8_t* bytes, const std::string& what) const {
  if (const std::string differs = compare(bytes); !differs.empty()) {
    throw Fault(what + ": " + differs);
  }
}

void Exchange::wait(const std::string& what, const std::function<bool()>& poll) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(rules_.patience_ms);
  const bool is_threaded = from_.hook.fn == nullptr || to_.hook.fn == nullptr;
  for (uint32_t turn = 1; !poll(); ++turn) {
    from_.hook();
    if (&to_ != &from_) {
      to_.hook();
    }
    if (is_threaded) {
      sched_yield();  // a thread of the card's may want this CPU
    }
    if (turn % kTurnsBetweenLooks != 0) {
      continue;
    }
    if (from_.card->gone() || to_.card->gone()) {
      throw Fault("the card is gone (its magic reads all ones) while waiting for " + what, -ENODEV);
    }
    if (Clock::now() > end) {
      throw Fault(what + " did not come within " + std::to_string(rules_.patience_ms) + " ms",
                  -ETIMEDOUT);
    }
  }
}

pmd::TxMessage Exchange::prepare(const MessageTrial& trial) {
  uint8_t* const bytes = from_.va(End::kTxPage);
  pattern(trial.number).fill(bytes, trial.len_bytes);
  std::memset(to_.va(End::kRxPage), Image::kPoison, kRxBytes);
  pmd::TxMessage message{.iova = from_.iova(End::kTxPage),
                         .cookie = trial.number,
                         .dest_id = to_.dest_id,
                         .length_bytes = static_cast<uint16_t>(trial.len_bytes),
                         .mbox = trial.mbox,
                         .flags = ssize_flag(trial.ssize_bytes)};
  if (trial.is_inline) {
    message.data = bytes;
    message.flags |= pmd::TxFlags::kInline;
  }
  return message;
}

void Exchange::post_tx(const pmd::TxMessage& message, const std::string& what) {
  if (from_.pair->tx().burst(&message, 1) != 1) {
    throw Fault(what + " is not taken: " + pmd::name(from_.pair->tx().last_reject()));
  }
}

/// Whether a completion is one that an exchange may have.
bool Exchange::is_good(pmd::Status status) {
  return status == pmd::Status::kOk ||
         (status == pmd::Status::kResponseTimeout && ++doubts_ <= rules_.doubts_max);
}

/// Look for the completion of the one message that was sent. @return whether it was there.
bool Exchange::reap_one(const std::string& what) {
  pmd::TxDone done{};
  const bool ended = from_.pair->tx().reap(&done, 1) == 1;
  if (ended && !is_good(done.status)) {
    throw Fault(what + " ended with '" + pmd::name(done.status) + "'");
  }
  return ended;
}

uint32_t Exchange::reap(uint32_t count) {
  std::vector<pmd::TxDone> done(count);
  done.resize(from_.pair->tx().reap(done.data(), static_cast<uint16_t>(count)));
  for (const pmd::TxDone& one : done) {
    if (!is_good(one.status)) {
      throw Fault("message " + std::to_string(one.cookie) + " of a burst ended with '" +
                  pmd::name(one.status) + "'");
    }
  }
  return static_cast<uint32_t>(done.size());
}

void Exchange::send(const pmd::TxMessage& message, const std::string& what) {
  post_tx(message, what);
  wait("the end of a " + what, [&] { return reap_one(what); });
}

/// Send a message, and wait until it has ended and `take` has got it at the other end.
void Exchange::transfer(const pmd::TxMessage& message, const std::string& what,
                        const std::function<bool()>& take) {
  post_tx(message, what);
  bool sent = false;
  bool came = false;
  wait(what, [&] {
    came = came || take();
    sent = sent || reap_one(what);
    return sent && came;
  });
}

Image Exchange::landing(const MessageTrial& trial, uint32_t len_bytes) const {
  const pmd::Caps& caps = to_.card->caps();
  const Pattern bytes = pattern(trial.number);
  Image image(len_bytes);
  const uint32_t ssize = trial.ssize_bytes;
  const uint32_t before = trial.segments() - 1;
  for (uint32_t k = 0; k < before; ++k) {
    image.put(bytes, k * ssize, k * ssize, ssize, ssize);
  }
  const uint32_t from = before * ssize;
  const uint32_t to = caps.quirk_last_at_256 ? before * regs::kSegmentBytesMax : from;
  if (caps.quirk_last_full_256) {
    image.anything(to, regs::kSegmentBytesMax);
  }
  const uint32_t last = trial.len_bytes - from;
  image.put(bytes, from, to, last, padded8(last));
  return image;
}

void Exchange::message(const MessageTrial& trial) {
  const std::string what = describe(trial);
  const pmd::TxMessage message = prepare(trial);
  const pmd::RxBuffer buffer{to_.iova(End::kRxPage), trial.number};
  if (to_.pair->shared().post(&buffer, 1) != 1) {
    throw Fault("the shared queue takes no buffer");
  }
  pmd::RxMessage got{};
  transfer(message, what, [&] { return to_.pair->shared().burst(&got, 1) == 1; });
  if (got.status != pmd::Status::kOk) {
    throw Fault(what + " came with '" + pmd::name(got.status) + "'");
  }
  if (got.cookie != trial.number || got.length_bytes != padded8(trial.len_bytes) ||
      got.mbox != trial.mbox || got.segments != trial.segments() || got.source != from_.dest_id ||
      got.dest_id != to_.dest_id) {
    throw Fault(what + " came as " + std::to_string(got.length_bytes) + " bytes in " +
                std::to_string(got.segments) + " segments, mailbox " + std::to_string(got.mbox) +
                ", from " + std::to_string(got.source));
  }
  landing(trial, kRxBytes).check(to_.va(End::kRxPage), what);
}

void Exchange::dedicated(uint32_t index, const MessageTrial& trial) {
  const std::string name = "dedicated queue " + std::to_string(index);
  const std::string what = name + ": " + describe(trial);
  pmd::DedicatedRxQueue& queue = *to_.pair->dedicated(index);
  const pmd::TxMessage message = prepare(trial);
  const pmd::DedicatedEntry entry{to_.iova(End::kRxPage), trial.number, trial.len_bytes};
  if (queue.post(&entry, 1) != 1) {
    throw Fault(name + " takes no entry of " + std::to_string(trial.len_bytes) +
                " bytes: " + pmd::name(queue.last_reject()));
  }
  pmd::EntryDone got{};
  transfer(message, what, [&] { return queue.reap(&got, 1) == 1; });
  if (got.status != pmd::Status::kOk || got.cookie != trial.number ||
      got.bytes != trial.len_bytes) {
    throw Fault(what + " came with '" + pmd::name(got.status) + "', " + std::to_string(got.bytes) +
                " bytes");
  }
  landing(trial, kRxBytes).check(to_.va(End::kRxPage), what);
}

void Exchange::doorbell(uint16_t info) {
  const std::string what = "doorbell " + std::to_string(info);
  const pmd::TxMessage message{.info = info,
                               .cookie = info,
                               .dest_id = to_.dest_id,
                               .length_bytes = 0,
                               .mbox = 0,
                               .flags = pmd::TxFlags::kDoorbell};
  pmd::DoorbellEvent got{};
  transfer(message, what, [&] { return to_.pair->doorbells().burst(&got, 1) == 1; });
  if (got.info != info || got.source != from_.dest_id || got.dest_id != to_.dest_id) {
    throw Fault(what + " came as " + std::to_string(got.info) + " from " +
                std::to_string(got.source));
  }
}

void Exchange::remote(const pmd::DmaRequest& request, const std::string& what) {
  pmd::EntryDone done{};
  do {  // again while it is in doubt
    if (from_.pair->dma().post(&request, 1) != 1) {
      throw Fault(what + " is not taken: " + pmd::name(from_.pair->dma().last_reject()));
    }
    wait("the end of a " + what, [&] { return from_.pair->dma().reap(&done, 1) == 1; });
  } while (done.status != pmd::Status::kOk && is_good(done.status));
  if (done.status != pmd::Status::kOk || done.bytes != request.length_bytes) {
    throw Fault(what + " ended with '" + std::string(pmd::name(done.status)) + "', " +
                std::to_string(done.bytes) + " bytes");
  }
}

}  // namespace rio::selftest
