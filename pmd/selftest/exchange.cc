#include "pmd/selftest/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>

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
      char text[64];
      std::snprintf(text, sizeof(text), "byte %u is 0x%02x, not 0x%02x", i, bytes[i],
                    static_cast<unsigned>(bytes_[i]));
      return text;
    }
  }
  return "";
}

std::string Exchange::wait(const std::string& what, const std::function<bool(std::string*)>& poll) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(rules_.patience_ms);
  const bool is_threaded = from_.hook.fn == nullptr || to_.hook.fn == nullptr;
  std::string wrong;
  for (uint32_t turn = 1;; ++turn) {
    if (poll(&wrong) || !wrong.empty()) {
      return wrong;
    }
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
      gone_ = true;
      return "the card is gone (its magic reads all ones) while waiting for " + what;
    }
    if (Clock::now() > end) {
      stalled_ = true;
      return what + " did not come within " + std::to_string(rules_.patience_ms) + " ms";
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

std::string Exchange::post_tx(const pmd::TxMessage& message, const std::string& what) {
  return from_.pair->tx().burst(&message, 1) == 1
             ? ""
             : what + " is not taken: " + pmd::name(from_.pair->tx().last_reject());
}

/// Whether a completion is one that an exchange may have.
bool Exchange::is_good(pmd::Status status) {
  return status == pmd::Status::kOk ||
         (status == pmd::Status::kResponseTimeout && ++doubts_ <= rules_.doubts_max);
}

/// Look for the completion of the one message that was sent. @return false: it is wrong.
bool Exchange::reap_one(const std::string& what, bool* sent, std::string* wrong) {
  pmd::TxDone done{};
  if (!*sent && from_.pair->tx().reap(&done, 1) == 1) {
    *sent = true;
    if (!is_good(done.status)) {
      *wrong = what + " ended with '" + pmd::name(done.status) + "'";
    }
  }
  return wrong->empty();
}

std::string Exchange::reap(uint32_t count, uint32_t* reaped) {
  std::vector<pmd::TxDone> done(count);
  *reaped = from_.pair->tx().reap(done.data(), static_cast<uint16_t>(count));
  for (uint32_t i = 0; i < *reaped; ++i) {
    if (!is_good(done[i].status)) {
      return "message " + std::to_string(done[i].cookie) + " of a burst ended with '" +
             pmd::name(done[i].status) + "'";
    }
  }
  return "";
}

std::string Exchange::send(const pmd::TxMessage& message, const std::string& what) {
  if (std::string wrong = post_tx(message, what); !wrong.empty()) {
    return wrong;
  }
  bool sent = false;
  return wait("the end of a " + what,
              [&](std::string* wrong) { return reap_one(what, &sent, wrong) && sent; });
}

/// Send a message, and wait until it has ended and `take` has got it at the other end.
std::string Exchange::transfer(const pmd::TxMessage& message, const std::string& what,
                               const std::function<bool()>& take) {
  if (std::string wrong = post_tx(message, what); !wrong.empty()) {
    return wrong;
  }
  bool sent = false;
  bool came = false;
  return wait(what, [&](std::string* wrong) {
    came = came || take();
    return reap_one(what, &sent, wrong) && sent && came;
  });
}

Image Exchange::landing(const MessageTrial& trial, uint32_t len_bytes) const {
  const pmd::Caps& caps = to_.card->caps();
  const Pattern bytes = pattern(trial.number);
  Image image(len_bytes);
  const uint32_t ssize = trial.ssize_bytes;
  const uint32_t segments = (trial.len_bytes + ssize - 1) / ssize;
  for (uint32_t k = 0; k + 1 < segments; ++k) {
    image.put(bytes, k * ssize, k * ssize, ssize, ssize);
  }
  const uint32_t from = (segments - 1) * ssize;
  const uint32_t to = caps.quirk_last_at_256 ? (segments - 1) * regs::kSegmentBytesMax : from;
  if (caps.quirk_last_full_256) {
    image.anything(to, regs::kSegmentBytesMax);
  }
  const uint32_t last = trial.len_bytes - from;
  image.put(bytes, from, to, last, padded8(last));
  return image;
}

std::string Exchange::check_landing(const MessageTrial& trial, const std::string& what) const {
  const std::string differs = landing(trial, kRxBytes).compare(to_.va(End::kRxPage));
  return differs.empty() ? "" : what + ": " + differs;
}

std::string Exchange::message(const MessageTrial& trial) {
  const std::string what = describe(trial);
  const pmd::TxMessage message = prepare(trial);
  const pmd::RxBuffer buffer{to_.iova(End::kRxPage), trial.number};
  if (to_.pair->shared().post(&buffer, 1) != 1) {
    return "the shared queue takes no buffer";
  }
  pmd::RxMessage got{};
  const auto take = [&] { return to_.pair->shared().burst(&got, 1) == 1; };
  if (std::string wrong = transfer(message, what, take); !wrong.empty()) {
    return wrong;
  }
  const uint32_t segments = (trial.len_bytes + trial.ssize_bytes - 1) / trial.ssize_bytes;
  if (got.status != pmd::Status::kOk) {
    return what + " came with '" + pmd::name(got.status) + "'";
  }
  if (got.cookie != trial.number || got.length_bytes != padded8(trial.len_bytes) ||
      got.mbox != trial.mbox || got.segments != segments || got.source != from_.dest_id ||
      got.dest_id != to_.dest_id) {
    return what + " came as " + std::to_string(got.length_bytes) + " bytes in " +
           std::to_string(got.segments) + " segments, mailbox " + std::to_string(got.mbox) +
           ", from " + std::to_string(got.source);
  }
  return check_landing(trial, what);
}

std::string Exchange::dedicated(pmd::DedicatedRxQueue& queue, const MessageTrial& trial) {
  const std::string what = "dedicated " + describe(trial);
  const pmd::TxMessage message = prepare(trial);
  const pmd::DedicatedEntry entry{to_.iova(End::kRxPage), trial.number, trial.len_bytes};
  if (queue.post(&entry, 1) != 1) {
    return "a dedicated queue takes no entry of " + std::to_string(trial.len_bytes) +
           " bytes: " + pmd::name(queue.last_reject());
  }
  pmd::EntryDone got{};
  const auto take = [&] { return queue.reap(&got, 1) == 1; };
  if (std::string wrong = transfer(message, what, take); !wrong.empty()) {
    return wrong;
  }
  if (got.status != pmd::Status::kOk || got.cookie != trial.number ||
      got.bytes != trial.len_bytes) {
    return what + " came with '" + pmd::name(got.status) + "', " + std::to_string(got.bytes) +
           " bytes";
  }
  return check_landing(trial, what);
}

std::string Exchange::doorbell(uint16_t info) {
  const std::string what = "doorbell " + std::to_string(info);
  const pmd::TxMessage message{.info = info,
                               .cookie = info,
                               .dest_id = to_.dest_id,
                               .length_bytes = 0,
                               .mbox = 0,
                               .flags = pmd::TxFlags::kDoorbell};
  pmd::DoorbellEvent got{};
  const auto take = [&] { return to_.pair->doorbells().burst(&got, 1) == 1; };
  if (std::string wrong = transfer(message, what, take); !wrong.empty()) {
    return wrong;
  }
  if (got.info != info || got.source != from_.dest_id || got.dest_id != to_.dest_id) {
    return what + " came as " + std::to_string(got.info) + " from " + std::to_string(got.source);
  }
  return "";
}

std::string Exchange::remote(const pmd::DmaRequest& request, const std::string& what) {
  if (from_.pair->dma().post(&request, 1) != 1) {
    return what + " is not taken: " + pmd::name(from_.pair->dma().last_reject());
  }
  bool in_doubt = false;
  std::string wrong = wait("the end of a " + what, [&](std::string* error) {
    pmd::EntryDone done{};
    if (from_.pair->dma().reap(&done, 1) == 0) {
      return false;
    }
    in_doubt = done.status != pmd::Status::kOk && is_good(done.status);
    if (!in_doubt && (done.status != pmd::Status::kOk || done.bytes != request.length_bytes)) {
      *error = what + " ended with '" + std::string(pmd::name(done.status)) + "', " +
               std::to_string(done.bytes) + " bytes";
    }
    return true;
  });
  return wrong.empty() && in_doubt ? remote(request, what) : wrong;
}

}  // namespace rio::selftest
